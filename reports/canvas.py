# SPDX-License-Identifier: Apache-2.0
"""What all figures share: colours, axes, legends, and saving. Nothing of it is global state.

The colours are those of Okabe and Ito, "Color Universal Design" (2008), which colour-blind readers
can tell apart.
"""

from io import BytesIO
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports import atomic

BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, YELLOW, GREY = "#CC79A7", "#56B4E9", "#F0E442", "#666666"
CYCLE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, "#000000", YELLOW)
MARKERS = "os^Dv<>P"


def polish(axes: Axes, grid: str) -> None:
    """Light grid along ``x``, ``y`` or ``both``, and no frame on the top and right."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, color="#DDDDDD", linewidth=0.7)  # type: ignore[arg-type]
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=9)


def legend_below(figure: Figure, ncols: int) -> None:
    """One legend under all panels, each label once."""
    found = [axes.get_legend_handles_labels() for axes in figure.axes]
    handles = {label: h for hs, ls in reversed(found) for h, label in zip(hs, ls, strict=True)}
    figure.legend(
        handles=list(handles.values()), loc="outside lower center", ncols=ncols, frameon=False,
        fontsize=9,
    )  # fmt: skip


def save(figure: Figure, path: Path) -> Path:
    """Write ``figure`` as a PNG of 150 dots an inch, atomically; returns ``path``."""
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=150, metadata={"Software": None})
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_bytes(path, buffer.getvalue())
    return path


def shown(figure: Figure | None, path: Path, title: str) -> str:
    """Save a figure in a folder ``figures`` beside the text, and give the Markdown that shows it.

    Empty if there is no figure.
    """
    if figure is None:
        return ""
    return f"![{title}](figures/{save(figure, path).name})"
