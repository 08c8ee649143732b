# SPDX-License-Identifier: Apache-2.0
"""Privacy against utility: each setting by its accuracy and by what the strongest attacker got."""

import pandas as pd

from reports.study import Study

COLUMNS = [
    "setting", "family", "strength", "permute", "other", "accuracy", "accuracy_spread", "attack",
    "variant", "threat", "metric", "value", "low", "high", "spread", "floor_mean_image",
    "floor_random_image", "attackers", "pareto",
]  # fmt: skip


def tradeoff(study: Study, metric: str = "ssim") -> pd.DataFrame:
    """A row a setting that was evaluated and attacked.

    A setting is as private as the strongest attacker leaves it, so the value is that of the
    attacker by which most came back (see :meth:`Study.strongest`; threat models that grant the
    order are upper bounds and do not count).

    Returns
    -------
    DataFrame
        ``setting``, ``family``, ``strength``, ``permute``, ``other``, ``accuracy`` (0 .. 1),
        ``accuracy_spread``; the strongest attacker's ``attack``, ``variant``, ``threat``,
        ``metric``, ``value``, ``low``, ``high``, ``spread``; ``floor_mean_image``,
        ``floor_random_image``; ``attackers``, all that tried, by name; ``pareto``, whether no other
        setting is at least as good in accuracy and privacy and better in one, both rounded as
        reports show them (0.01 % and 0.001, or 0.01 dB): rounding errors of the training decide
        nothing.
    """
    found = study.strongest(metric)
    found = found.sort_values("success", ascending=False, kind="stable")
    best = found.drop_duplicates("setting").set_index("setting")
    tried = found.sort_index().groupby("setting")["attack"].agg(", ".join).rename("attackers")
    table = study.utility.join(best, how="inner").join(tried).dropna(subset=["accuracy", "value"])
    digits = 2 if metric.startswith("psnr") else 3
    points = table["accuracy"].round(4), table["success"].round(digits)
    table = table.assign(pareto=pareto(*points))
    return table.reset_index(names="setting")[COLUMNS]


def pareto(utility: "pd.Series[float]", success: "pd.Series[float]") -> list[bool]:
    """Which points no other one dominates: more utility is better, less attack success is."""
    points = list(zip(utility, success, strict=True))
    return [not any(_dominates(other, point) for other in points) for point in points]


def _dominates(one: tuple[float, float], other: tuple[float, float]) -> bool:
    no_worse = one[0] >= other[0] and one[1] <= other[1]
    return no_worse and one != other
