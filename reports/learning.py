# SPDX-License-Identifier: Apache-2.0
"""Learning curves of attackers: whether they had learned all they could when they were tested."""

import json
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from reports.errors import RunFolderError
from reports.labels import labels
from reports.run_folder import RunFolder

FILE = "history.json"
KEYS = ("stage", "epoch", "loss", "held_out")
COLUMNS = ["run", "attack", *KEYS]


def learning_table(runs: Sequence[RunFolder]) -> pd.DataFrame:
    """Curves of all attackers of the runs, long.

    Returns
    -------
    DataFrame
        ``run``, ``attack``, ``stage``, ``epoch`` (0: before any learning), ``loss`` in training and
        ``held_out``, the loss on auxiliary people kept apart; each stage has a loss of its own.

    Raises
    ------
    RunFolderError
        If a curve cannot be read.
    """
    rows = [
        {"run": label, "attack": path.parent.name, **point}
        for run, label in zip(runs, labels(runs), strict=True)
        for path in sorted((run.path / "attacks").glob(f"*/{FILE}"))
        for point in _points(path)
    ]
    table = pd.DataFrame(rows, columns=COLUMNS)
    return table.astype({"epoch": "int64", "loss": "float64", "held_out": "float64"})


def _points(path: Path) -> list[dict[str, object]]:
    try:
        points = json.loads(path.read_text(encoding="utf-8"))
        return [{key: point[key] for key in KEYS} for point in points]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunFolderError(f"{path} cannot be read: {error!r}") from error
