# SPDX-License-Identifier: Apache-2.0
"""The check of a model: which submodules commute with permutations, and why others do not.

=============  ==================================================================
`check`        `check_equivariance` and its report
`arrangement`  inputs, positions and masks permuted along with the stream
`run`          the plain run of a copy of the model
`trace`        what each submodule takes and gives, forward and backward
`relations`    how a tensor of the permuted run relates to its counterpart
`compare`      a permuted run, compared with the plain one
`reasons`      why a module breaks; one function per reason
`stack`        a model's blocks, heads, and width
=============  ==================================================================
"""

from equivariance.checking.check import TESTS, Place, Test, check_equivariance, first_broken

__all__ = ["TESTS", "Place", "Test", "check_equivariance", "first_broken"]
