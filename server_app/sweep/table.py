# SPDX-License-Identifier: Apache-2.0
"""``trials.parquet``: a row for each trial, rewritten whole after every change."""

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pandas as pd
import pyarrow as pa

from reports import atomic
from reports.sweep_folder import TRIALS
from server_app.sweep.trials import Trial

__all__ = ["Row", "Status", "TrialTable"]

Status = Literal["pending", "finished", "failed"]


@dataclass
class Row:
    """How one trial went.

    Parameters
    ----------
    status : {"pending", "finished", "failed"}
        ``pending`` also while it runs.
    error : str
        Why it failed, in one line; empty if it did not.
    seconds : float
        Time that its processes took, all starts together.
    """

    status: Status = "pending"
    error: str = ""
    seconds: float = 0.0


class TrialTable:
    """The rows of a sweep, in memory and on disk.

    Parameters
    ----------
    folder : Path
        The sweep's folder. Rows that an earlier start left there are taken over.
    trials : Iterable[Trial]
        All trials of the sweep; other rows are dropped.
    """

    def __init__(self, folder: Path, trials: Iterable[Trial]) -> None:
        self._path = folder / TRIALS
        self._trials = {trial.name: trial for trial in trials}
        before = _read(self._path)
        self.rows = {name: before.get(name, Row()) for name in self._trials}

    def __getitem__(self, trial: Trial) -> Row:
        return self.rows[trial.name]

    def failed(self) -> Iterator[tuple[str, str]]:
        """Name and error of each trial that failed."""
        return ((n, row.error) for n, row in self.rows.items() if row.status == "failed")

    def count(self, status: Status) -> int:
        """Number of trials that stand so."""
        return sum(row.status == status for row in self.rows.values())

    def write(self) -> None:
        """Replace the file."""
        frame = pd.DataFrame(
            [
                {"trial": name, "status": row.status, "error": row.error, "seconds": row.seconds}
                | dict(trial.varied)
                for (name, trial), row in zip(self._trials.items(), self.rows.values(), strict=True)
            ]
        )
        buffer = io.BytesIO()
        frame.to_parquet(buffer, index=False)
        atomic.write_bytes(self._path, buffer.getvalue())


def _read(path: Path) -> dict[str, Row]:
    """The rows on disk; none if there is no readable table: the run folders hold the truth."""
    try:
        frame = pd.read_parquet(path, columns=["trial", "status", "error", "seconds"])
    except (OSError, ValueError, KeyError, pa.ArrowException):
        return {}
    return {
        str(row.trial): Row(row.status, str(row.error), float(row.seconds))  # type: ignore[arg-type]
        for row in frame.itertuples(index=False)
    }
