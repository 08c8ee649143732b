# SPDX-License-Identifier: Apache-2.0
"""Runs the trials of a sweep, some side by side, and keeps the table of how they went."""

import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from reports import RunFolder, RunFolderError
from reports.report import write_report
from server_app.cli.launch.interrupts import Interrupted
from server_app.sweep.jobs import Job, StartJob, wait_for_all
from server_app.sweep.standing import Step, missing_attackers, next_step
from server_app.sweep.table import Row, TrialTable
from server_app.sweep.trials import Trial

__all__ = ["Running", "Watcher", "run_trials"]

PAUSE = 0.3
PATIENCE = 240.0
"""Seconds that a trial has to stop its run. Its launcher takes seconds as a rule, but asks Flower
twice with a minute's timeout; to kill it before would leave Flower and Ray without a master."""

SET_ASIDE = "set-aside"


@dataclass(frozen=True, kw_only=True)
class Running:
    """A trial at work.

    Parameters
    ----------
    trial : Trial
    step : Step
        What is being done for it.
    job : Job
    begun : float
        As ``time.time`` counts.
    """

    trial: Trial
    step: Step
    job: Job
    begun: float


class Watcher(Protocol):
    """Is told how the sweep goes."""

    def begun(self, running: Running) -> None:
        """A trial was started."""

    def ended(self, trial: Trial, row: Row) -> None:
        """A trial has finished or failed, or was found to have."""

    def going(self, running: Sequence[Running]) -> None:
        """Called again and again while trials run."""

    def stopping(self) -> None:
        """The sweep was interrupted and waits for its trials to clean up."""


def run_trials(
    trials: Sequence[Trial],
    table: TrialTable,
    start: StartJob,
    watcher: Watcher,
    *,
    jobs: int = 1,
    retry_failed: bool = False,
) -> None:
    """Bring every trial to its end, or to a failure in the table.

    What is done is left alone, what was begun is continued, and what failed before is tried again
    only with ``retry_failed``.

    Parameters
    ----------
    trials : sequence of Trial
    table : TrialTable
        Written after every change.
    start : StartJob
        Starts one step of a trial.
    watcher : Watcher
    jobs : int
        Trials at a time.
    retry_failed : bool

    Raises
    ------
    Interrupted
        After all trials at work were stopped; they stay pending.
    """
    _Execution(table, start, watcher, jobs).run(_waiting(trials, table, watcher, retry_failed))


def _waiting(
    trials: Sequence[Trial], table: TrialTable, watcher: Watcher, retry_failed: bool
) -> deque[Trial]:
    """The trials to run; the others are settled in the table."""
    waiting: deque[Trial] = deque()
    for trial in trials:
        row = table[trial]
        if next_step(trial) is Step.NOTHING:
            _close(trial)
            row.status, row.error = "finished", ""
        elif row.status != "failed" or retry_failed:
            row.status, row.error = "pending", ""
            waiting.append(trial)
            continue
        watcher.ended(trial, row)
    table.write()
    return waiting


class _Execution:
    """The trials at work."""

    def __init__(self, table: TrialTable, start: StartJob, watcher: Watcher, jobs: int) -> None:
        self._table, self._start_job, self._watcher, self._jobs = table, start, watcher, jobs
        self._running: list[Running] = []

    def run(self, waiting: deque[Trial]) -> None:
        try:
            while waiting or self._running:
                while waiting and len(self._running) < self._jobs:
                    self._start(waiting.popleft())
                self._collect()
                self._watcher.going(self._running)
                if self._running:
                    time.sleep(PAUSE)
        except BaseException:
            self._stop()
            raise

    def _start(self, trial: Trial) -> None:
        try:
            step = next_step(trial)
            if step is Step.AFRESH:
                _set_aside(trial.folder)
            job = self._start_job(trial, step)
        except OSError as error:
            self._end(trial, f"could not be started: {error}")
            return
        self._running.append(Running(trial=trial, step=step, job=job, begun=time.time()))
        self._watcher.begun(self._running[-1])

    def _collect(self) -> None:
        for running in list(self._running):
            code = running.job.poll()
            if code is None:
                continue
            self._running.remove(running)
            self._table[running.trial].seconds += time.time() - running.begun
            self._end(running.trial, running.job.error() if code else _lacking(running.trial))

    def _end(self, trial: Trial, error: str) -> None:
        row = self._table[trial]
        if not error:
            _close(trial)
        row.status, row.error = ("failed", error) if error else ("finished", "")
        self._table.write()
        self._watcher.ended(trial, row)

    def _stop(self) -> None:
        """Stop all jobs; a second interrupt makes them hurry."""
        jobs = [running.job for running in self._running]
        if not jobs:
            return
        with suppress(OSError):  # a terminal that is gone is no reason to leave trials running
            self._watcher.stopping()
        for patience in (PATIENCE, PATIENCE / 3):
            try:
                for job in jobs:
                    if job.poll() is None:
                        job.interrupt()
                wait_for_all(jobs, patience)
                break
            except Interrupted:
                continue
        for running in self._running:
            self._table[running.trial].seconds += time.time() - running.begun
        self._table.write()


def _lacking(trial: Trial) -> str:
    """What a trial lacks although its process ended well; empty as it should be."""
    step = next_step(trial)
    if step is Step.NOTHING:
        return ""
    if step is Step.ATTACK:
        return f"ended well, but without results of {', '.join(missing_attackers(trial))}"
    return f"ended well, but its run is not complete: {trial.folder}"


def _close(trial: Trial) -> None:
    """A run that failed in an attack is finished once the attack has succeeded."""
    run = RunFolder.open(trial.folder)
    if run.facts().get("status") != "finished":
        run.set_status("finished")
        try:
            write_report(run)
        except (OSError, RunFolderError):
            return  # the sweep's own report names what is broken


def _set_aside(folder: Path) -> None:
    """Move a folder that cannot be continued out of the way, into ``set-aside/``."""
    place = folder.parent / SET_ASIDE
    place.mkdir(exist_ok=True)
    number = 1
    while (place / f"{folder.name}-{number}").exists():
        number += 1
    folder.rename(place / f"{folder.name}-{number}")
