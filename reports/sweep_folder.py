# SPDX-License-Identifier: Apache-2.0
"""A sweep on disk: what was asked for, how each trial went, and the runs themselves.

::

    <sweep>/
        sweep.toml        the grid
        trials.parquet    one row a trial: trial, status, error, seconds, and the keys varied
        <trial>/          the run folder of a trial
        figures/          of the report
        report.md
"""

from pathlib import Path

import pandas as pd
import pyarrow as pa

from reports.errors import RunFolderError
from reports.run_folder import RunFolder

GRID, TRIALS = "sweep.toml", "trials.parquet"
NEEDED = ("trial", "status", "error", "seconds")


class SweepFolder:
    """One sweep's folder, complete or not. Get it from :meth:`open`."""

    def __init__(self, path: Path, trials: pd.DataFrame) -> None:
        self.path = path
        self.trials = trials
        self.runs: list[RunFolder] = []
        self.problems: dict[str, str] = {}
        for name, status in zip(trials["trial"], trials["status"], strict=True):
            if (path / name).is_dir() or status == "finished":
                self._open_run(str(name))

    @staticmethod
    def is_sweep(path: Path) -> bool:
        """Whether a folder is a sweep's."""
        return (path / TRIALS).exists() or (path / GRID).exists()

    @classmethod
    def open(cls, path: str | Path) -> "SweepFolder":
        """Open a sweep.

        Raises
        ------
        RunFolderError
            If there is no such folder, or its table of trials is missing or broken. A broken run
            is no error: it is named in ``problems``.
        """
        folder = Path(path)
        if not folder.is_dir():
            raise RunFolderError(f"{path}: no such folder")
        if not (folder / TRIALS).exists():
            raise RunFolderError(f"{path} is not a sweep that has begun: {TRIALS} is missing")
        return cls(folder, _trials(folder / TRIALS))

    @property
    def name(self) -> str:
        """Name of the sweep."""
        return self.path.resolve().name

    @property
    def grid(self) -> str:
        """The text of ``sweep.toml``; empty if it is missing."""
        file = self.path / GRID
        return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""

    @property
    def keys(self) -> list[str]:
        """The keys that were varied."""
        return [str(name) for name in self.trials.columns if name not in NEEDED]

    @property
    def figures_path(self) -> Path:
        """Folder of the report's figures."""
        return self.path / "figures"

    @property
    def report_path(self) -> Path:
        """The report."""
        return self.path / "report.md"

    def counts(self) -> dict[str, int]:
        """Number of trials by status."""
        statuses = self.trials["status"]
        return {str(status): int((statuses == status).sum()) for status in dict.fromkeys(statuses)}

    def _open_run(self, name: str) -> None:
        try:
            run = RunFolder.open(self.path / name)
            for table in (run.metrics, run.attacks):
                table()
        except RunFolderError as error:
            self.problems[name] = str(error)
        else:
            self.runs.append(run)


def _trials(path: Path) -> pd.DataFrame:
    try:
        trials = pd.read_parquet(path)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise RunFolderError(f"{path} cannot be read: {error}") from error
    missing = [name for name in NEEDED if name not in trials.columns]
    if missing:
        raise RunFolderError(f"{path}: missing column {', '.join(map(repr, missing))}")
    return trials
