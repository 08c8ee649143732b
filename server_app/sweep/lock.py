# SPDX-License-Identifier: Apache-2.0
"""One sweep at a time in a folder."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from config import Problem
from reports.exclusive import exclusive
from server_app.sweep.errors import SweepError

__all__ = ["only_sweep_in"]

LOCK = ".lock"


@contextmanager
def only_sweep_in(folder: Path) -> Iterator[int]:
    """Hold the folder's lock, and yield its file descriptor for child processes to inherit.

    As long as one of them lives the lock is held, even if the sweep itself was killed: then a
    trial is still being worked on, and a second process must not touch it.

    Raises
    ------
    SweepError
        If somebody else holds it.
    """
    with ExitStack() as stack:
        try:
            descriptor = stack.enter_context(exclusive(folder / LOCK))
        except BlockingIOError as error:
            busy = "another sweep, or a trial that a killed one left behind, works in it; wait"
            raise SweepError(str(folder), [Problem("folder", str(folder), busy)]) from error
        yield descriptor
