# SPDX-License-Identifier: Apache-2.0
"""The one error of this package."""


class RunFolderError(ValueError):
    """What is wrong with a run folder, or with what was to be written into it, and where."""
