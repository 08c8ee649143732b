# SPDX-License-Identifier: Apache-2.0
"""Models of the experiments, each with its conjugation rules where the library has none."""
