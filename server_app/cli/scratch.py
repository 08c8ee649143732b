# SPDX-License-Identifier: Apache-2.0
"""Temporary folders whose paths are short enough for the sockets in them."""

import os
import tempfile
from pathlib import Path

__all__ = ["short_folder"]

LONGEST = 24
"""A Unix socket's path has 107 bytes at most, and Ray appends some 70 of its own."""


def short_folder() -> Path:
    """A new folder among the temporary files; in ``/tmp`` if their usual place is too deep."""
    usual = tempfile.gettempdir()
    deep = os.name == "posix" and len(os.fsencode(usual)) >= LONGEST
    return Path(tempfile.mkdtemp(prefix="permsplit-", dir="/tmp" if deep else usual))
