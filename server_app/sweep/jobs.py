# SPDX-License-Identifier: Apache-2.0
"""A step of a trial as a process of its own."""

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from server_app.sweep.commands import PERMSPLIT, Launch, command
from server_app.sweep.standing import Step
from server_app.sweep.trials import Trial

__all__ = ["Job", "ProcessJob", "StartJob", "process_starter"]

LONGEST_ERROR = 500


class Job(Protocol):
    """Work on a trial that has been started."""

    def poll(self) -> int | None:
        """The exit code, or None while it works."""

    def error(self) -> str:
        """After a failure: what went wrong, in one line."""

    def interrupt(self) -> None:
        """Ask it to stop and to clean up."""

    def kill(self) -> None:
        """End it at once."""


StartJob = Callable[[Trial, Step], Job]
"""Starts one step of a trial; replaced by a fake in tests."""


class ProcessJob:
    """``permsplit`` with some arguments; what it prints is appended to a log.

    Parameters
    ----------
    arguments : list of str
    log : Path
    inherited : tuple of int
        File descriptors to pass on.
    """

    def __init__(self, arguments: list[str], log: Path, inherited: tuple[int, ...] = ()) -> None:
        self._log, self._name = log, f"permsplit {arguments[0]}"
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with log.open("ab") as file:
            file.write(f"---- {now} permsplit {shlex.join(arguments)}\n".encode())
            self._start = file.tell()
            self._process = subprocess.Popen(
                [*PERMSPLIT, *arguments],
                env=os.environ | {"COLUMNS": "200", "NO_COLOR": "1"},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                pass_fds=inherited,
                start_new_session=True,  # a Ctrl-C in the terminal is for the sweep alone
            )

    def poll(self) -> int | None:
        return self._process.poll()

    def error(self) -> str:
        """The line that tells of the failure, or the last one."""
        with self._log.open("rb") as file:
            file.seek(self._start)
            text = file.read().decode("utf-8", errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        told = [line.removeprefix("Failed: ") for line in lines if line.startswith("Failed: ")]
        last = [*lines[-1:], *told[-1:]]
        if not last:
            return f"{self._name} ended with code {self._process.returncode} without a word"
        return last[-1][:LONGEST_ERROR]

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def process_starter(launch: Launch, inherited: tuple[int, ...] = ()) -> StartJob:
    """Starts the steps of trials as processes on this machine."""

    def start(trial: Trial, step: Step) -> Job:
        return ProcessJob(command(trial, step, launch), trial.log, inherited)

    return start


def wait_for_all(jobs: list[Job], patience: float) -> None:
    """Wait for jobs that were interrupted; those that outlast ``patience`` (seconds) are killed."""
    deadline = time.monotonic() + patience
    while any(job.poll() is None for job in jobs) and time.monotonic() < deadline:
        time.sleep(0.1)
    for job in jobs:
        if job.poll() is None:
            job.kill()
