# SPDX-License-Identifier: Apache-2.0
"""Names beside points, placed so that they cover neither points nor one another."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

SIZE = 7.5
"""Of the letters, in points; a letter is about 0.56 times as wide as it is high."""

REACH = 8.0
"""Distance of a name from its point, in points."""


@dataclass(frozen=True)
class Box:
    """A rectangle in points."""

    left: float
    bottom: float
    right: float
    top: float

    def overlap(self, other: "Box") -> float:
        """Area in common."""
        wide = min(self.right, other.right) - max(self.left, other.left)
        high = min(self.top, other.top) - max(self.bottom, other.bottom)
        return max(0.0, wide) * max(0.0, high)


def name_points(
    axes: Axes,
    points: Sequence[tuple[float, float]],
    names: Sequence[str],
    size: tuple[float, float],
) -> None:
    """Write each name beside its point.

    Parameters
    ----------
    axes : Axes
        With its final limits.
    points : Sequence[tuple[float, float]]
        In data coordinates.
    names : Sequence[str]
    size : tuple[float, float]
        Width and height of the axes in inches, about.
    """
    width, height = 72 * size[0], 72 * size[1]
    (x0, x1), (y0, y1) = axes.get_xlim(), axes.get_ylim()
    at = [(width * (x - x0) / (x1 - x0), height * (y - y0) / (y1 - y0)) for x, y in points]
    taken = [Box(x - 4, y - 4, x + 4, y + 4) for x, y in at]
    lowest_first = sorted(zip(points, at, names, strict=True), key=lambda item: item[1][::-1])
    for point, (x, y), name in lowest_first:
        places = list(_places(x, y, 0.56 * SIZE * len(name)))
        costs = [_cost(box, taken, width, height) + abs(offset[1]) for box, offset, _ in places]
        box, offset, side = places[costs.index(min(costs))]
        taken.append(box)
        axes.annotate(
            name, point, xytext=offset, textcoords="offset points", ha=side, va="center",
            fontsize=SIZE, color="#333333", zorder=5,
        )  # fmt: skip


def _places(x: float, y: float, wide: float) -> Iterator[tuple[Box, tuple[float, float], str]]:
    """Where a name may stand, the preferred places first."""
    half = 0.6 * SIZE
    for up in (0.0, 1.0, -1.0, 2.0, -2.0, 3.0):
        for side, start in (("left", REACH), ("right", -REACH - wide), ("center", -wide / 2)):
            if side == "center" and up == 0:
                continue
            middle = y + up * 1.4 * SIZE
            box = Box(x + start, middle - half, x + start + wide, middle + half)
            across = 0.0 if side == "center" else REACH if side == "left" else -REACH
            yield box, (across, up * 1.4 * SIZE), side


def _cost(box: Box, taken: Sequence[Box], width: float, height: float) -> float:
    outside = max(0.0, -box.left) + max(0.0, box.right - width)
    outside += max(0.0, -box.bottom) + max(0.0, box.top - height)
    return sum(box.overlap(other) for other in taken) + 100 * outside
