# SPDX-License-Identifier: Apache-2.0
"""What the user sees while a run goes: log lines, and a bar where there is a terminal."""

from collections.abc import Iterable
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from server_app.cli.launch.log_filter import LogLine
from server_app.cli.launch.progress import Progress as RunProgress

STYLES = {"WARNING": "yellow", "ERROR": "red", "CRITICAL": "bold red", "DEBUG": "dim"}


class Display:
    """Prints lines above a progress bar; without a terminal there are only the lines.

    Parameters
    ----------
    console : Console
        Where to print.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("starting Flower and Ray", total=1.0)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def lines(self, lines: Iterable[LogLine]) -> None:
        """Print log lines."""
        for line in lines:
            self.say(str(line), style=STYLES.get(line.level, ""))

    def say(self, text: str, style: str = "") -> None:
        """Print one line, whatever its length and its brackets."""
        self._console.print(Text(text, style=style), soft_wrap=True)

    def progress(self, progress: RunProgress | None) -> None:
        """Move the bar."""
        if progress is not None:
            self._bar.update(self._task, completed=progress.fraction, description=str(progress))
