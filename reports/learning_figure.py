# SPDX-License-Identifier: Apache-2.0
"""Learning curves of attackers, drawn: a panel for each thing that was learned."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from reports.canvas import BLUE, CYCLE, GREY, legend_below, polish
from reports.labels import labels
from reports.learning import learning_table
from reports.run_folder import RunFolder
from reports.settings import FAMILIES, Setting, settings
from reports.study import groups

WIDTH = 3


def learning_figure(runs: Sequence[RunFolder]) -> Figure | None:
    """Loss over epochs, a panel for each attacker and stage; None if nothing was learned.

    One run: training (dashed) and held-out loss. Several: held-out loss alone, a line a run, in the
    colour of its family of defences, dashed if permuted.
    """
    table = learning_table(runs)
    if table.empty:
        return None
    panels = list(groups(table, ["attack", "stage"]))
    figure, axes = _panels(len(panels))
    for panel, ((attack, stage), curves) in zip(axes, panels, strict=True):
        if len(runs) == 1:
            _one_run(panel, curves)
        else:
            _several(panel, curves, dict(zip(labels(runs), settings(runs), strict=True)))
        title = attack if attack == stage else f"{attack}: {stage}"
        panel.set_title(title, fontsize=10, loc="left")
        panel.set_xlabel("epoch")
        panel.set_ylabel("loss")
        panel.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        if (curves[["loss", "held_out"]] > 0).all(axis=None):
            _logarithmic(panel)
        polish(panel, grid="both")
    legend_below(figure, ncols=4)
    return figure


def _panels(count: int) -> tuple[Figure, list[Axes]]:
    columns = min(WIDTH, count)
    rows = -(-count // columns)
    figure = Figure(figsize=(3.3 * columns + 0.4, 2.6 * rows + 0.6), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for unused in axes[count:]:
        unused.remove()
    return figure, axes[:count]


def _logarithmic(axes: Axes) -> None:
    """A logarithmic axis whose labels are plain numbers."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _one_run(axes: Axes, curves: pd.DataFrame) -> None:
    curves = curves.sort_values("epoch")
    learned = curves[curves["epoch"] > 0]
    axes.plot(learned["epoch"], learned["loss"], color=GREY, linestyle="--", linewidth=1.3,
              label="in training")  # fmt: skip
    axes.plot(curves["epoch"], curves["held_out"], color=BLUE, linewidth=1.6,
              label="on auxiliary people held out")  # fmt: skip


def _several(axes: Axes, curves: pd.DataFrame, known: dict[str, Setting]) -> None:
    """Colours go by family, the shades of its strengths by width of the line."""
    families = list(dict.fromkeys([*FAMILIES, *(s.family for s in known.values())]))
    for label, setting in sorted(known.items(), key=lambda item: item[1].order):
        mine = curves[curves["run"] == label].sort_values("epoch")
        if not mine.empty:
            axes.plot(
                mine["epoch"], mine["held_out"], linewidth=1.4, label=setting.label,
                color=CYCLE[families.index(setting.family) % len(CYCLE)],
                linestyle="-" if setting.permute == "none" else (0, (4, 2)),
            )  # fmt: skip
