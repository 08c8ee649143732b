# SPDX-License-Identifier: Apache-2.0
"""Tables of cost: what went over the wire, and where the time went."""

from collections.abc import Sequence

import pandas as pd

from reports.labels import labels
from reports.run_folder import RunFolder
from reports.utility import over_clients

LEG = ["phase", "leg", "direction"]
COLUMNS = [
    "run", *LEG, "bytes", "bytes_per_step", "messages", "seconds", "time_share", "images",
    "images_per_second",
]  # fmt: skip


def cost_table(runs: Sequence[RunFolder]) -> pd.DataFrame:
    """Bytes and seconds of each leg, summed over rounds and clients; training first.

    Returns
    -------
    DataFrame
        Columns ``run``, ``phase``, ``leg``, ``direction``, ``bytes``, ``bytes_per_step`` (a step is
        one batch of one client, in the leg's phase), ``messages``, ``seconds``, ``time_share``
        (0 .. 1, of the sum over the run's legs; legs may overlap in time), ``images``, and
        ``images_per_second`` of the whole phase. NaN where the run does not tell.
    """
    ledgers = [(run, label, run.ledger()) for run, label in zip(runs, labels(runs), strict=True)]
    frames = [_of_one(run, rows).assign(run=label) for run, label, rows in ledgers if len(rows)]
    return (
        pd.concat(frames, ignore_index=True)[COLUMNS] if frames else pd.DataFrame(columns=COLUMNS)
    )


def bytes_per_image(run: RunFolder) -> float:
    """All bytes of training over the images trained on (an image counts each time it is seen)."""
    ledger = run.ledger()
    train = ledger[ledger["phase"] == "train"]
    return _ratio(train["bytes"].sum(), train.loc[_is_smashed(train), "images"].sum())


def images_per_second(run: RunFolder, phase: str = "train") -> float:
    """Images of all rounds over their seconds, from the metric of that name; NaN without it.

    Parameters
    ----------
    run : RunFolder
    phase : {"train", "evaluate"}
    """
    return _speed(run.metrics(), phase)


def _of_one(run: RunFolder, ledger: pd.DataFrame) -> pd.DataFrame:
    sums = ledger.groupby(LEG, sort=False)[["bytes", "messages", "seconds", "images"]].sum()
    table = sums.reset_index().sort_values("phase", key=_train_first, kind="stable")
    steps = ledger[_is_smashed(ledger)].groupby("phase")["messages"].sum()
    steps = steps[steps > 0]
    metrics = run.metrics()
    speeds = {phase: _speed(metrics, phase) for phase in ("train", "evaluate")}
    return table.assign(
        bytes_per_step=table["bytes"] / table["phase"].map(steps),
        time_share=table["seconds"] / table["seconds"].sum(),
        images_per_second=table["phase"].map(speeds),
    )


def _speed(metrics: pd.DataFrame, phase: str) -> float:
    rows = metrics[(metrics["metric"] == "images_per_second") & (metrics["value"] > 0)]
    rows = over_clients(rows[(rows["split"] == "train") == (phase == "train")])
    images = rows["count"].clip(lower=1)
    return _ratio(images.sum(), (images / rows["value"]).sum())


def _train_first(phases: "pd.Series[str]") -> "pd.Series[bool]":
    return phases != "train"


def _is_smashed(ledger: pd.DataFrame) -> "pd.Series[bool]":
    """Rows of the leg that carries each batch exactly once."""
    return ledger["leg"].isin(("smashed", "evaluate-smashed"))


def _ratio(numerator: float, denominator: float) -> float:
    return float(numerator) / float(denominator) if denominator else float("nan")
