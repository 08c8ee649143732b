# SPDX-License-Identifier: Apache-2.0
"""Tables of utility: how well a run's model answers, beside the majority-class floor."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from reports.labels import labels
from reports.run_folder import RunFolder

ALL_CLIENTS = -1
NOT_UTILITY = ("images_per_second", "seconds", "learning_rate")
PER_ATTRIBUTE = ("accuracy", "balanced_accuracy", "floor")
CELL = ["round", "split", "attribute", "metric"]


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The last evaluation of a run; every share is in 0 .. 1, and NaN where it was not measured.

    Parameters
    ----------
    split : str
        ``test``, or ``validation`` where there is no test.
    round : int
        The round after which it was measured.
    accuracy, balanced_accuracy, floor : float
        Means over attributes; the floor is the accuracy of always answering the majority class.
    loss : float
        Mean loss of an image.
    count : int
        Images behind the accuracy.
    """

    split: str
    round: int
    accuracy: float
    balanced_accuracy: float
    floor: float
    loss: float
    count: int


def utility_table(runs: Sequence[RunFolder]) -> pd.DataFrame:
    """Utility of all rounds, long.

    Rows are over all clients: as the run measured it, or, where it did not, the mean over its
    clients weighted by their images.

    Returns
    -------
    DataFrame
        Columns ``run``, ``round``, ``split``, ``attribute``, ``metric``, ``value``, ``count``.
    """
    frames = [
        over_clients(_utility_only(run.metrics())).assign(run=label)
        for run, label in zip(runs, labels(runs), strict=True)
    ]
    columns = ["run", *CELL, "value", "count"]
    if not frames:
        return pd.DataFrame(columns=columns)
    return pd.concat(frames, ignore_index=True)[columns]


def utility_per_attribute(run: RunFolder, split: str = "test") -> pd.DataFrame:
    """Utility of each attribute at the last evaluation of ``split``.

    Returns
    -------
    DataFrame
        Columns ``attribute``, ``accuracy``, ``balanced_accuracy``, ``floor`` (0 .. 1, NaN where not
        measured) and ``gain``, accuracy minus floor. In the order in which the run wrote them.
    """
    table = utility_table([run])
    table = table[(table["split"] == split) & ~table["attribute"].isin(("mean", ""))]
    table = table[table["metric"].isin(PER_ATTRIBUTE)]
    table = table[table["round"] == table["round"].max()]
    order = list(dict.fromkeys(table["attribute"]))
    wide = table.pivot_table(index="attribute", columns="metric", values="value", aggfunc="last")
    wide = wide.reindex(index=order, columns=list(PER_ATTRIBUTE)).astype("float64")
    wide["gain"] = wide["accuracy"] - wide["floor"]
    wide.columns.name = None
    flat: pd.DataFrame = wide.reset_index(names="attribute")
    return flat


def headline(run: RunFolder) -> Headline | None:
    """The last evaluation on the test split, else on validation; None before any evaluation."""
    table = utility_table([run])
    table = table[table["attribute"].isin(("mean", ""))]
    for split in ("test", "validation"):
        found = table[(table["split"] == split) & (table["metric"] != "floor")]
        if not found.empty:
            last = int(found["round"].max())
            return _headline(table[(table["split"] == split) & (table["round"] == last)])
    return None


def over_clients(metrics: pd.DataFrame) -> pd.DataFrame:
    """One row for each round, split, attribute and metric: what was written last, over clients."""
    latest = metrics.drop_duplicates([*CELL, "client"], keep="last")
    whole = latest[latest["client"] == ALL_CLIENTS].drop(columns="client")
    single = latest[latest["client"] != ALL_CLIENTS]
    if single.empty:
        return whole.reset_index(drop=True)
    joined = single.merge(whole[CELL], how="left", on=CELL, indicator="known")
    unknown = joined[joined["known"] == "left_only"].drop(columns="known")
    return pd.concat([whole, _weighted(unknown)], ignore_index=True)


def _utility_only(metrics: pd.DataFrame) -> pd.DataFrame:
    return metrics[~metrics["metric"].isin(NOT_UTILITY)]


def _weighted(rows: pd.DataFrame) -> pd.DataFrame:
    rows = rows.assign(weight=rows["count"].clip(lower=1))
    rows = rows.assign(weighted=rows["value"] * rows["weight"])
    sums = rows.groupby(CELL, sort=False)[["weighted", "weight", "count"]].sum().reset_index()
    return sums.assign(value=sums["weighted"] / sums["weight"])[[*CELL, "value", "count"]]


def _headline(rows: pd.DataFrame) -> Headline:
    # "mean" before "", so that the mean over attributes wins where a metric has both.
    ordered = rows.sort_values("attribute", ascending=False, kind="stable")
    values = ordered.drop_duplicates("metric").set_index("metric")

    def value(metric: str) -> float:
        return float(values["value"].get(metric, float("nan")))

    return Headline(
        split=str(rows["split"].iloc[0]),
        round=int(rows["round"].iloc[0]),
        accuracy=value("accuracy"),
        balanced_accuracy=value("balanced_accuracy"),
        floor=value("floor"),
        loss=value("loss"),
        count=int(values["count"].get("accuracy", values["count"].max())),
    )
