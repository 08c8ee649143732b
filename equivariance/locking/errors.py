# SPDX-License-Identifier: Apache-2.0
"""The one error of this package."""

__all__ = ["LockError"]


class LockError(ValueError):
    """A file or model cannot be locked, unlocked or attacked; no file has been changed.

    The message names the file, what is wrong with it and what is allowed.
    """
