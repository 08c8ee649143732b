# SPDX-License-Identifier: Apache-2.0
"""What the user sees of a sweep: a bar for all trials, and a line for each at work."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from reports.display import duration
from server_app.cli.launch.progress import read_progress
from server_app.sweep.execute import Running
from server_app.sweep.standing import Step
from server_app.sweep.table import Row
from server_app.sweep.trials import Trial

__all__ = ["SweepView"]

BEGUN = {
    Step.START: "started",
    Step.AFRESH: "started anew, as it had no checkpoint",
    Step.RESUME: "continued from its checkpoint",
    Step.ATTACK: "attacked, as its training is complete",
}


class SweepView:
    """Prints a line when a trial begins or ends; below it bars, where there is a terminal.

    Parameters
    ----------
    console : Console
    trials : int
        Number of trials of the sweep.
    """

    def __init__(self, console: Console, trials: int) -> None:
        self._console = console
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[told]}", markup=False),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._failed = 0
        self._all = self._bars.add_task("trials", total=trials, told="")
        self._tasks: dict[str, TaskID] = {}
        self._count(0)

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def begun(self, running: Running) -> None:
        name = running.trial.name
        self._say(f"{name}: {BEGUN[running.step]}")
        self._tasks[name] = self._bars.add_task(name, total=1.0, told="")

    def ended(self, trial: Trial, row: Row) -> None:
        known = trial.name in self._tasks
        if known:
            self._bars.remove_task(self._tasks.pop(trial.name))
        self._failed += row.status == "failed"
        self._count(1)
        if row.status == "failed":
            self._say(f"{trial.name}: failed: {row.error}", style="red")
        elif known:
            self._say(f"{trial.name}: finished, {duration(row.seconds)} in all", style="green")
        else:
            self._say(f"{trial.name}: is there already", style="dim")

    def going(self, running: Sequence[Running]) -> None:
        for one in running:
            done, told = how_far(one)
            self._bars.update(self._tasks[one.trial.name], completed=done, told=told)

    def stopping(self) -> None:
        self._say("Stopping the trials at work; once more hurries them.", style="yellow")

    def _count(self, more: int) -> None:
        self._bars.advance(self._all, more)
        task = self._bars.tasks[0]
        told = f"{task.completed:.0f}/{task.total:.0f}"
        told += f", {self._failed} failed" if self._failed else ""
        self._bars.update(self._all, told=told)

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(Text(text, style=style), soft_wrap=True)


def how_far(running: Running) -> tuple[float, str]:
    """Share of the work that is done, 0 .. 1, and where a trial is just now."""
    folder = running.trial.folder
    if running.step is Step.ATTACK:
        return _of_attacks(folder, running.begun)
    progress = read_progress(folder / "progress.json", since=running.begun)
    return (0.0, "starting") if progress is None else (progress.fraction, str(progress))


def _of_attacks(folder: Path, since: float) -> tuple[float, str]:
    """The same from what the attackers' tasks write last."""
    files = folder.glob("attacks/*/progress.json")
    written = {path: path.stat().st_mtime for path in files if path.is_file()}
    newest = max(written, key=lambda path: written[path], default=None)
    if newest is None or written[newest] < since:
        return 0.0, "starting"
    try:
        told = json.loads(newest.read_text(encoding="utf-8"))
        done, total = int(told["done"]), max(1, int(told["total"]))
    except (OSError, ValueError, LookupError, TypeError):
        return 0.0, newest.parent.name
    return min(done / total, 1.0), f"attack {newest.parent.name}: {told['stage']} {done}/{total}"
