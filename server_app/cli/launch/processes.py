# SPDX-License-Identifier: Apache-2.0
"""Finding and ending the processes of one run.

SuperLink's helpers start sessions of their own and Ray's daemons outlive their parents for a
while, so neither a process group nor parentage holds them together. All inherit the run's own
``FLWR_HOME``, and start in that folder: Ray's agents overwrite their environment with their title.
"""

import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

PROC = Path("/proc")


def processes_of(home: Path) -> list[int]:
    """Ids of the living processes with ``home`` in their environment or as working folder.

    Empty where there is no ``/proc`` (macOS). This process and those of a terminal do not count.
    """
    own = os.getpid()
    return [pid for pid in _pids() if pid != own and _belongs(PROC / str(pid), str(home))]


def end_processes(home: Path, *, patience: float = 8.0) -> list[int]:
    """Wait for the processes of ``home`` to go, then terminate and at last kill them.

    Returns
    -------
    list[int]
        What is left all the same; empty as a rule.
    """
    for wait, number in ((patience, signal.SIGTERM), (patience / 4, signal.SIGKILL), (2.0, None)):
        left = _wait_gone(home, wait)
        if not left or number is None:
            return left
        _signal(left, number)
    return []


def _wait_gone(home: Path, seconds: float) -> list[int]:
    deadline = time.monotonic() + seconds
    while (left := processes_of(home)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def _pids() -> list[int]:
    if not PROC.is_dir():
        return []
    return [int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit()]


def _belongs(process: Path, home: str) -> bool:
    """False for a zombie, a process that has gone, and one of another user."""
    try:
        if not _home_in(process, home):
            return False
        state, *fields = (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return state != "Z" and fields[3] == "0"  # the fourth is the terminal


def _home_in(process: Path, home: str) -> bool:
    """Whether a process was started with ``home`` in its environment, or in that folder."""
    if home.encode() in (process / "environ").read_bytes():
        return True
    return str((process / "cwd").readlink()).removesuffix(" (deleted)") == home
