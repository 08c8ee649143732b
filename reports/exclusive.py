# SPDX-License-Identifier: Apache-2.0
"""One process at a time: a lock that ends with its holders, however they end."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["exclusive"]


@contextmanager
def exclusive(file: Path) -> Iterator[int]:
    """Hold the lock ``file``, made if it is not there, and yield its descriptor.

    Child processes that inherit the descriptor hold the lock too.

    Raises
    ------
    BlockingIOError
        If somebody else holds it.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield handle.fileno()
