# SPDX-License-Identifier: Apache-2.0
"""Figures of training: utility over rounds and by attribute, and the cost of each leg."""

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from reports.canvas import (
    BLUE,
    CYCLE,
    GREEN,
    GREY,
    MARKERS,
    ORANGE,
    PURPLE,
    VERMILION,
    legend_below,
    polish,
)
from reports.cost import cost_table
from reports.display import size
from reports.labels import labels
from reports.run_folder import RunFolder
from reports.utility import utility_per_attribute, utility_table

SPLITS = (("train", GREY, "^"), ("validation", ORANGE, "s"), ("test", BLUE, "o"))


def utility_figure(runs: Sequence[RunFolder]) -> Figure | None:
    """Accuracy (floor dashed) and loss over rounds; None where there is neither.

    One run: a line for each split. Several: a line for each run, all on the split that was
    evaluated most often (test or validation, named at the axes).
    """
    table = utility_table(runs)
    table = table[table["attribute"].isin(("mean", ""))]
    table = table[table["metric"].isin(("accuracy", "floor", "loss"))]
    split = _most_evaluated(table) if len(runs) > 1 else ""
    lines = _lines_of_runs(table, labels(runs), split) if split else _lines_of_splits(table)
    if not lines:
        return None
    figure = Figure(figsize=(8.0, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for label, style, rows in lines:
        _line(left, rows, "accuracy", 100.0, label=label, **style)
        _line(right, rows, "loss", 1.0, label=label, **style)
        _floor(left, rows, str(style["color"]))
    _finish_rounds(left, f"mean {split} accuracy (%)".replace("  ", " "))
    _finish_rounds(right, f"{split} loss per image".strip())
    left.plot([], [], color=GREY, linestyle="--", linewidth=1.2, label="majority-class floor")
    legend_below(figure, ncols=4)
    return figure


def attribute_figure(run: RunFolder, split: str = "test") -> Figure | None:
    """Accuracy of each attribute joined to its floor, sorted by gain; None without evaluation."""
    table = utility_per_attribute(run, split).dropna(subset=["accuracy"])
    if table.empty:
        return None
    table = table.sort_values(["gain", "accuracy"], na_position="first").reset_index(drop=True)
    figure = Figure(figsize=(6.4, 1.3 + 0.21 * len(table)), layout="constrained")
    axes = figure.subplots()
    rows, accuracy, floor = table.index, 100 * table["accuracy"], 100 * table["floor"]
    colours = [VERMILION if gain < 0 else BLUE for gain in table["gain"]]
    axes.hlines(rows, floor, accuracy, color=colours, linewidth=2.2, alpha=0.55, zorder=2)
    axes.scatter(floor, rows, s=26, facecolor="white", edgecolor=GREY, zorder=3)
    axes.scatter(accuracy, rows, s=28, color=colours, zorder=4)
    axes.set_yticks(list(rows), [name.replace("_", " ") for name in table["attribute"]], fontsize=8)
    axes.set_ylim(-0.7, len(table) - 0.3)
    axes.set_xlabel(f"{split} accuracy (%)")
    polish(axes, grid="x")
    axes.scatter([], [], s=28, color=BLUE, label="accuracy, above the floor")
    axes.scatter([], [], s=28, color=VERMILION, label="below it")
    axes.scatter([], [], s=26, facecolor="white", edgecolor=GREY, label="majority-class floor")
    legend_below(figure, ncols=3)
    return figure


def cost_figure(run: RunFolder) -> Figure | None:
    """Bytes and seconds of each leg as bars, coloured by phase; None without a ledger."""
    table = cost_table([run])
    if table.empty:
        return None
    phases = list(dict.fromkeys(table["phase"]))
    table = table.iloc[::-1].reset_index(drop=True)  # bars grow upwards
    figure = Figure(figsize=(8.0, 1.2 + 0.27 * len(table)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for phase, colour in zip(phases, (BLUE, ORANGE, GREEN, PURPLE), strict=False):
        rows = table[table["phase"] == phase]
        for axes, column in ((left, "bytes"), (right, "seconds")):
            axes.barh(rows.index, rows[column], color=colour, height=0.7, label=phase)
    left.set_yticks(list(table.index), list(table["leg"]), fontsize=9)
    left.set_xlabel("bytes, all rounds and clients")
    left.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))
    left.xaxis.set_major_locator(MaxNLocator(4))
    right.set_xlabel("seconds, summed over clients")
    for axes in (left, right):
        polish(axes, grid="x")
    legend_below(figure, ncols=2)
    return figure


Line = tuple[str, dict[str, Any], pd.DataFrame]


def _lines_of_splits(table: pd.DataFrame) -> list[Line]:
    return [
        (split, _style(colour, marker), table[table["split"] == split])
        for split, colour, marker in SPLITS
        if (table["split"] == split).any()
    ]


def _lines_of_runs(table: pd.DataFrame, names: Sequence[str], split: str) -> list[Line]:
    """One line a run, in an order that leaves each its colour, whichever runs have the split."""
    looks = zip(names, cycle(CYCLE), cycle(MARKERS), strict=False)
    styles = {name: _style(colour, marker) for name, colour, marker in looks}
    table = table[table["split"] == split]
    return [
        (name, styles[name], rows) for name in names if len(rows := table[table["run"] == name])
    ]


def _most_evaluated(table: pd.DataFrame) -> str:
    """``test`` or ``validation``, whichever has more points; test if equal; empty if neither."""
    points = {split: int((table["split"] == split).sum()) for split in ("test", "validation")}
    best = max(points, key=lambda split: points[split])
    return best if points[best] else "train"


def _style(colour: str, marker: str) -> dict[str, Any]:
    ring = {"markeredgecolor": "white", "markeredgewidth": 0.6}
    return {"color": colour, "marker": marker, "markersize": 5.5, "linewidth": 1.6, **ring}


def _floor(axes: Axes, rows: pd.DataFrame, colour: str) -> None:
    floor = rows[(rows["metric"] == "floor") & (rows["split"] != "train")]
    if floor["round"].nunique() == 1:  # one evaluation: a line across, or nothing would show
        axes.axhline(100 * floor["value"].iloc[0], color=colour, linestyle="--", linewidth=1.2)
    else:
        _line(axes, floor, "floor", 100.0, color=colour, linestyle="--", linewidth=1.2)


def _line(axes: Axes, rows: pd.DataFrame, metric: str, scale: float, **style: Any) -> None:
    found = rows[rows["metric"] == metric].sort_values("attribute", ascending=False, kind="stable")
    found = found.drop_duplicates("round").sort_values("round")
    if not found.empty:
        axes.plot(found["round"], scale * found["value"], **style)


def _finish_rounds(axes: Axes, label: str) -> None:
    axes.set_xlabel("round")
    axes.set_ylabel(label)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    polish(axes, grid="both")


def _tick(value: float) -> str:
    return size(value).replace(".00", "")
