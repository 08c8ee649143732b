# SPDX-License-Identifier: Apache-2.0
"""How hard attackers tried: what they learned from, and for how long."""

import json
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from reports.errors import RunFolderError
from reports.labels import labels
from reports.learning import learning_table
from reports.run_folder import RunFolder

FILE = "finished.json"
COLUMNS = ["run", "attack", "images", "people", "stage", "epochs"]


def effort_table(runs: Sequence[RunFolder]) -> pd.DataFrame:
    """The newest finished try of each attacker, a row for each thing that it learned.

    Returns
    -------
    DataFrame
        ``run``, ``attack``; ``images`` and ``people``, the auxiliary ones at hand (0: not noted);
        ``stage``, empty for an attacker without a learning curve, and its ``epochs``.

    Raises
    ------
    RunFolderError
        If a file of an attacker cannot be read.
    """
    rows = []
    for label, run in zip(labels(runs), runs, strict=True):
        curves = learning_table([run])
        for path in sorted((run.path / "attacks").glob(f"*/{FILE}")):
            attack = path.parent.name
            last = curves[curves["attack"] == attack].groupby("stage", sort=False)["epoch"].max()
            images, people = _auxiliary(path)
            rows += [
                [label, attack, images, people, stage, epochs]
                for stage, epochs in (last.items() if len(last) else [("", 0)])
            ]
    table = pd.DataFrame(rows, columns=COLUMNS)
    return table.astype({"images": "int64", "people": "int64", "epochs": "int64"})


def _auxiliary(path: Path) -> tuple[int, int]:
    try:
        told = json.loads(path.read_text(encoding="utf-8")).get("auxiliary", {})
        return int(told.get("images", 0)), int(told.get("people", 0))
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise RunFolderError(f"{path} cannot be read: {error!r}") from error
