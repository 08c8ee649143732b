# SPDX-License-Identifier: Apache-2.0
"""Progress of attackers: a bar for each."""

from types import TracebackType

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)


class AttackBars:
    """A context in which :meth:`watch` draws bars."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("{task.fields[attacker]:<10} {task.description:<18}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> "AttackBars":
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def watch(self, attacker: str, stage: str, done: int, total: int) -> None:
        """Show how far an attacker is in its stage."""
        if attacker not in self._tasks:
            self._tasks[attacker] = self._progress.add_task(stage, attacker=attacker, total=total)
        task = self._tasks[attacker]
        self._progress.update(task, description=stage, completed=done, total=total)
