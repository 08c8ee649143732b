# SPDX-License-Identifier: Apache-2.0
"""What attackers achieved, over runs: one long table, and the same with repeats put together."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from reports.labels import labels
from reports.run_folder import RunFolder
from reports.schemas import ATTACKS
from reports.settings import NOT_OF_A_SETTING, Setting, differing, settings
from reports.utility import headline

ONE_RESULT = ["attack", "variant", "threat", "client", "seed", "metric"]
WAY = ["attack", "variant", "threat"]
UTILITY = ("accuracy", "balanced_accuracy", "accuracy_floor")
FLOORS = ("floor_mean_image", "floor_random_image", "floor_untrained", "floor_chance")
LOWER_IS_MORE = ("lpips",)
"""Metrics of which a smaller value means that more came back."""

TOLD = ("told-order",)
"""Threat models that are granted what they should guess: upper bounds, not attacks that happen."""


def one_of_repeats(rows: pd.DataFrame) -> pd.DataFrame:
    """One row of each result, though an attack may have been repeated.

    Repeats count that are like the newest: of the same checkpoint, with the same network behind a
    metric. Of those with the most images the one from which most came back: a hurried repeat must
    not hide what a patient attacker had got.
    """
    alike = pd.Series(True, index=rows.index)
    for column in ("round", "embedder"):
        alike &= rows[column] == rows.groupby(ONE_RESULT, sort=False)[column].transform("last")
    kept = rows[alike]
    more = kept["value"].where(~kept["metric"].isin(LOWER_IS_MORE), -kept["value"])
    order = kept.assign(more=more).sort_values(
        ["count", "more"], kind="stable", na_position="first"
    )
    best = order.drop_duplicates(ONE_RESULT, keep="last").index.sort_values()
    return rows.loc[best].reset_index(drop=True)


def attack_table(runs: Sequence[RunFolder]) -> pd.DataFrame:
    """All attack results, long: a row a run, attack, variant, threat, client, seed and metric.

    Returns
    -------
    DataFrame
        ``run``; ``setting``, ``family`` and ``strength`` (:class:`reports.settings.Setting`); the
        columns of :data:`reports.schemas.ATTACKS`; ``run_seed``, the seed of the training;
        ``accuracy``, ``balanced_accuracy`` and ``accuracy_floor`` of the run's last evaluation
        (0 .. 1, NaN where not measured); then a column for each further key in which the runs
        differ.
    """
    apart = _further_keys(runs)
    columns = [
        "run", "setting", "family", "strength", *ATTACKS, "run_seed", *UTILITY,
        *(key.replace("-", "_") for key in apart),
    ]  # fmt: skip
    frames = [
        one_of_repeats(run.attacks()).assign(run=label, **_of_run(run, setting, apart))
        for run, label, setting in zip(runs, labels(runs), settings(runs), strict=True)
    ]
    frames = [frame for frame in frames if not frame.empty]
    if not frames:
        return pd.DataFrame(columns=columns)
    return pd.concat(frames, ignore_index=True)[columns]


def setting_order(runs: Sequence[RunFolder]) -> list[Setting]:
    """The settings of the runs, each once, the paper's first."""
    return sorted(dict.fromkeys(settings(runs)), key=lambda setting: setting.order)


def over_repeats(table: pd.DataFrame) -> pd.DataFrame:
    """Results of an :func:`attack_table` with all repeats of a setting, its seeds, as one.

    Attacks on different victims are no repeats. Where one run was attacked on all its clients and
    on some alone, those count from whom most came back, metric by metric.

    Returns
    -------
    DataFrame
        ``setting``, ``attack``, ``variant``, ``threat``, ``metric``; ``value``, the mean;
        ``spread``, the standard deviation over repeats (NaN for one); ``low`` and ``high``, the
        span of the repeats' intervals; the four floors, means; ``repeats``. In the order of the
        table.
    """
    cell = ["setting", *WAY, "metric"]
    columns = [*cell, "value", "spread", "low", "high", *FLOORS, "repeats"]
    if table.empty:
        return pd.DataFrame(columns=columns)
    means = {floor: (floor, "mean") for floor in FLOORS}
    grouped: Any = _one_choice_of_victims(table).groupby(cell, sort=False)
    whole: pd.DataFrame = grouped.agg(
        value=("value", "mean"), spread=("value", "std"), low=("low", "min"), high=("high", "max"),
        repeats=("value", "size"), **means,
    ).reset_index()  # fmt: skip
    return whole[columns]


def _one_choice_of_victims(table: pd.DataFrame) -> pd.DataFrame:
    """Of each run, way and metric the rows about the client (or all) of whom most came back."""
    cell = ["run", *WAY, "metric"]
    more = table["value"].where(~table["metric"].isin(LOWER_IS_MORE), -table["value"])
    mean = more.groupby([table[key] for key in (*cell, "client")]).transform("mean")
    order = table.assign(mean=mean).sort_values("mean", kind="stable", na_position="first")
    chosen = order.groupby(cell)["client"].transform("last").sort_index()
    return table[table["client"] == chosen]


def strongest(results: pd.DataFrame, metric: str, *, told: bool = False) -> pd.DataFrame:
    """Of :func:`over_repeats`, the row of each setting and attack in which most came back.

    Chosen by the score on the victims, which favours the attacker. Column ``success`` is the value,
    or its negative where less means more. Without ``told``, upper bounds (:data:`TOLD`) are left
    out.
    """
    rows = results[results["metric"] == metric].dropna(subset=["value"])
    if not told:
        rows = rows[~rows["threat"].isin(TOLD)]
    sign = -1.0 if metric in LOWER_IS_MORE else 1.0
    rows = rows.assign(success=sign * rows["value"])
    rows = rows.sort_values("success", ascending=False, kind="stable")
    return rows.drop_duplicates(["setting", "attack"]).sort_index()


def utility_of_settings(runs: Sequence[RunFolder]) -> pd.DataFrame:
    """Utility of each setting over the runs that have it.

    Returns
    -------
    DataFrame
        Index ``setting`` in :func:`setting_order`; ``family``, ``strength``, ``permute``,
        ``other``; ``accuracy`` and ``balanced_accuracy``, means (0 .. 1); ``accuracy_spread``,
        the standard deviation over runs (NaN for one); ``accuracy_floor``; ``runs``.
    """
    rows = []
    for setting, run in zip(settings(runs), runs, strict=True):
        rows.append({"setting": setting.label, **_utility(run)})
    order = {setting.label: setting for setting in setting_order(runs)}
    facts = {
        label: {
            "family": s.family, "strength": s.strength, "permute": s.permute, "other": s.other
        }
        for label, s in order.items()
    }  # fmt: skip
    index = pd.Index(order, name="setting", dtype="object")
    if not rows:
        return pd.DataFrame(index=index)
    grouped: Any = pd.DataFrame(rows).groupby("setting", sort=False)
    whole: pd.DataFrame = grouped.agg(
        accuracy=("accuracy", "mean"), accuracy_spread=("accuracy", "std"),
        balanced_accuracy=("balanced_accuracy", "mean"), accuracy_floor=("accuracy_floor", "mean"),
        runs=("accuracy", "size"),
    )  # fmt: skip
    return pd.DataFrame.from_dict(facts, orient="index").join(whole).reindex(index)


def _further_keys(runs: Sequence[RunFolder]) -> list[str]:
    return [
        key for key in differing(runs)
        if key not in NOT_OF_A_SETTING and key.replace("-", "_") not in ATTACKS
    ]  # fmt: skip


def _of_run(run: RunFolder, setting: Setting, apart: Sequence[str]) -> dict[str, Any]:
    config = run.config()
    return {
        "setting": setting.label,
        "family": setting.family,
        "strength": setting.strength,
        "run_seed": config.get("seed"),
        **_utility(run),
        **{key.replace("-", "_"): config.get(key) for key in apart},
    }


def _utility(run: RunFolder) -> dict[str, float]:
    last = headline(run)
    if last is None:
        return dict.fromkeys(UTILITY, float("nan"))
    return {
        "accuracy": last.accuracy,
        "balanced_accuracy": last.balanced_accuracy,
        "accuracy_floor": last.floor,
    }
