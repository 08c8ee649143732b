# SPDX-License-Identifier: Apache-2.0
"""Several attacked runs seen as one study: settings, repeats, attackers."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, cast

import pandas as pd

from reports.attack_results import (
    TOLD,
    attack_table,
    over_repeats,
    setting_order,
    strongest,
    utility_of_settings,
)
from reports.run_folder import RunFolder
from reports.settings import Setting

IMAGE_METRICS = ("ssim", "psnr", "f_sim", "lpips", "ssim_paper", "psnr_paper")


class Study:
    """What tables and figures over several runs are made of; read once, when first asked for.

    Parameters
    ----------
    runs : Sequence[RunFolder]
        Attacked or not, of one setting or many.
    """

    def __init__(self, runs: Sequence[RunFolder]) -> None:
        self.runs = list(runs)

    @cached_property
    def table(self) -> pd.DataFrame:
        """:func:`reports.attack_results.attack_table` of the runs."""
        return attack_table(self.runs)

    @cached_property
    def results(self) -> pd.DataFrame:
        """:func:`reports.attack_results.over_repeats` of the table."""
        return over_repeats(self.table)

    @cached_property
    def utility(self) -> pd.DataFrame:
        """:func:`reports.attack_results.utility_of_settings` of the runs."""
        return utility_of_settings(self.runs)

    @cached_property
    def settings(self) -> list[Setting]:
        """The settings in the order of tables."""
        return setting_order(self.runs)

    def attackers(self, metric: str | None = None) -> list[str]:
        """Names of the attackers, or of those that have results in ``metric``, as first met."""
        rows = self.results
        if metric is not None:
            rows = rows[rows["metric"] == metric]
        return list(dict.fromkeys(rows["attack"]))

    def strongest(self, metric: str) -> pd.DataFrame:
        """Per setting and attacker the way by which most came back; upper bounds left out."""
        return strongest(self.results, metric)

    def accuracy(self, setting: Setting) -> tuple[float, float]:
        """Mean accuracy of a setting (0 .. 1) and its spread over runs; NaN where not measured."""
        row = self.utility[["accuracy", "accuracy_spread"]].to_dict("index")[setting.label]
        return float(row["accuracy"]), float(row["accuracy_spread"])


def groups(table: pd.DataFrame, by: list[str]) -> Iterator[tuple[tuple[str, ...], pd.DataFrame]]:
    """Groups of rows that agree in the columns ``by``, as first met, each with its values there."""
    for key, rows in table.groupby(by, sort=False):
        yield tuple(str(part) for part in cast(Any, key)), rows


def way_name(attack: str, variant: str, threat: str) -> str:
    """What a way of an attacker is called: ``decoder``, ``position, set``, ``analytic, inverse,
    told-order``."""
    parts = [attack, *([variant] if variant else []), *([threat] if threat in TOLD else [])]
    return ", ".join(parts)
