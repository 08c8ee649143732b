# SPDX-License-Identifier: Apache-2.0
"""Privacy/utility curves: accuracy against what came back, attacker by attacker."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.attack_results import LOWER_IS_MORE
from reports.attack_text import METRICS
from reports.canvas import CYCLE, GREY, MARKERS, legend_below, polish
from reports.point_names import name_points
from reports.settings import FAMILIES
from reports.study import Study
from reports.tradeoff import tradeoff

WIDTH = 3
"""Panels side by side."""

PANEL, ALONE = (2.9, 2.6), (5.6, 3.5)
"""Width and height of a panel in inches: one of several, and a single one."""

NAMED = 16
"""Points at most that have their names beside them."""

FLOORS = (("floor_mean_image", "--", "mean image"), ("floor_random_image", ":", "random image"))


def tradeoff_figure(study: Study, metric: str = "ssim") -> Figure | None:
    """A panel an attacker, and a last one with the strongest attacker of each setting.

    x: mean test accuracy in percent. y: the metric, with the span of its bootstrap intervals. A
    colour and a marker for each family of defences, filled without and hollow with permutation;
    strengths of a family are joined. The floors are lines; the last panel has the Pareto set. None
    if no evaluated setting was attacked.
    """
    whole = tradeoff(study, metric)
    if whole.empty:
        return None
    found = study.strongest(metric).merge(study.utility, left_on="setting", right_index=True)
    panels = [(attack, found[found["attack"] == attack]) for attack in study.attackers(metric)]
    panels = [(attack, rows) for attack, rows in panels if not rows.empty]
    if len(panels) > 1:
        panels.append(("strongest of each setting", whole))
    looks = _looks(list(dict.fromkeys(whole["family"])))
    figure, axes = _panels(len(panels))
    for panel, (title, rows) in zip(axes, panels, strict=False):
        _draw(panel, rows.dropna(subset=["accuracy"]), looks)
        panel.set_title(title, fontsize=10, loc="left")
        polish(panel, grid="both")
    last = axes[len(panels) - 1]
    _pareto(last, whole)
    _finish(figure, axes, metric, looks)
    if len(whole) <= NAMED:
        _limits(axes, whole)
        points = list(zip(100 * whole["accuracy"], whole["value"], strict=True))
        name_points(last, points, list(whole["setting"]), PANEL if len(panels) > 1 else ALONE)
    return figure


def _panels(count: int) -> tuple[Figure, list[Axes]]:
    columns = min(WIDTH, count)
    rows = -(-count // columns)
    wide, high = PANEL if count > 1 else ALONE
    size = ((wide + 0.3) * columns + 0.5, (high + 0.45) * rows + 0.8)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    axes = list(grid.flat)
    for unused in axes[count:]:
        unused.remove()
    for panel in axes[max(0, count - columns) : count]:
        panel.tick_params(labelbottom=True)
        panel.set_xlabel("mean test accuracy (%)")
    return figure, axes[:count]


def _looks(families: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Colour and marker of each family; those of the paper always have the same."""
    order = [*FAMILIES, *(family for family in families if family not in FAMILIES)]
    return {f: (CYCLE[i % len(CYCLE)], MARKERS[i % len(MARKERS)]) for i, f in enumerate(order)
            if f in families}  # fmt: skip


def _draw(axes: Axes, rows: pd.DataFrame, looks: dict[str, tuple[str, str]]) -> None:
    for (family, permute, _), line in rows.groupby(["family", "permute", "other"], sort=False):
        colour, marker = looks[str(family)]
        filled = permute == "none"
        x, y = 100 * line["accuracy"], line["value"]
        reach = [(y - line["low"]).clip(lower=0), (line["high"] - y).clip(lower=0)]
        style: dict[str, Any] = {
            "color": colour, "marker": marker, "markersize": 7, "linewidth": 1.0, "alpha": 0.95,
            "elinewidth": 1.2, "capsize": 2.5, "markeredgecolor": colour, "markeredgewidth": 1.5,
            "markerfacecolor": colour if filled else "white",
            "linestyle": "-" if filled else (0, (4, 2)),
        }  # fmt: skip
        axes.errorbar(x, y, yerr=reach, zorder=3, **style)
    for column, dash, _ in FLOORS:
        if rows[column].notna().any():
            axes.axhline(float(rows[column].mean()), color=GREY, linestyle=dash, linewidth=1.2)


def _pareto(axes: Axes, table: pd.DataFrame) -> None:
    front = table[table["pareto"]].sort_values("accuracy")
    axes.plot(100 * front["accuracy"], front["value"], color="black", linewidth=5, alpha=0.15,
              solid_capstyle="round", zorder=1)  # fmt: skip
    axes.scatter(100 * front["accuracy"], front["value"], s=170, color="black", alpha=0.15,
                 linewidths=0, zorder=1)  # fmt: skip


def _limits(axes: Sequence[Axes], table: pd.DataFrame) -> None:
    """Some room at the sides for names; the axes are shared."""
    low, high = 100 * float(table["accuracy"].min()), 100 * float(table["accuracy"].max())
    room = max(0.5, 0.12 * (high - low))
    axes[0].set_xlim(low - room, high + room)


def _finish(
    figure: Figure, axes: Sequence[Axes], metric: str, looks: dict[str, tuple[str, str]]
) -> None:
    less = "higher" if metric in LOWER_IS_MORE else "lower"
    figure.supylabel(f"{METRICS.get(metric, metric)} ({less}: more private)", fontsize=10)
    first = axes[0]
    dots: dict[str, Any] = {"linestyle": "none", "markersize": 7}
    for family, (colour, marker) in looks.items():
        first.plot([], [], color=colour, marker=marker, label=family, **dots)
    dots |= {"color": GREY, "marker": "o"}
    first.plot([], [], label="filled: in order", **dots)
    hollow = {"markerfacecolor": "white", "markeredgecolor": GREY, "markeredgewidth": 1.5}
    first.plot([], [], label="hollow: permuted", **dots | hollow)
    for _, dash, name in FLOORS:
        first.plot([], [], color=GREY, linestyle=dash, linewidth=1.2, label=f"floor: {name}")
    first.plot([], [], color="black", linewidth=5, alpha=0.15, label="Pareto set")
    legend_below(figure, ncols=4)
