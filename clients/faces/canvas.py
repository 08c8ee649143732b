# SPDX-License-Identifier: Apache-2.0
"""A supersampled canvas that is drawn on in face units, and the curves that are drawn on it."""

import math
from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw

from clients.faces.colours import RGB

__all__ = ["ANCHOR", "Canvas", "band", "curve", "ellipse", "mirror", "moved"]

ANCHOR = (0.5, 0.45)
"""Where the point between the eyes lies, in shares of the image's width and height."""

_MIN_PIXELS = 128  # enough that lids, lips and rims keep soft borders at 32 px
_FACTOR = 3
_FACTOR_LARGE = 2  # borders look smooth with less where pixels are small against every line
_LARGE = 128
_COARSE = 4  # canvas pixels of one backdrop step
_SPLINE_STEPS = 5
_SOFT_PIXELS = 33
_SOFT_LEVELS = 100

_CIRCLE_ANGLES = np.linspace(0.0, 2.0 * np.pi, 24, endpoint=False)
_CIRCLE = np.stack([np.cos(_CIRCLE_ANGLES), np.sin(_CIRCLE_ANGLES)], axis=1)


@lru_cache(maxsize=_SOFT_LEVELS + 1)
def _soft_disc(level: int) -> Image.Image:
    """Opacity mask of a disc that fades to its border; `level` of 100 is opaque at the centre."""
    axis = np.linspace(-1.0, 1.0, _SOFT_PIXELS)
    squared = np.minimum(axis[:, None] ** 2 + axis[None, :] ** 2, 1.0)
    opacity = (255.0 * level / _SOFT_LEVELS) * (1.0 - squared) ** 2
    return Image.fromarray(np.round(opacity).astype(np.uint8))


@lru_cache(maxsize=1024)  # faces of one size share most of their masks; 20 MB at the largest size
def _soft_ellipse(level: int, half_x: int, half_y: int) -> Image.Image:
    return _soft_disc(level).resize((2 * half_x, 2 * half_y), Image.Resampling.BILINEAR)


@lru_cache(maxsize=64)
def _spline_matrix(points: int, closed: bool) -> np.ndarray:
    """Matrix [samples, points] of a Catmull-Rom spline through its control points."""
    segments = points if closed else points - 1
    t = np.arange(_SPLINE_STEPS) / _SPLINE_STEPS
    weights = 0.5 * np.stack(
        [-t + 2 * t**2 - t**3, 2 - 5 * t**2 + 3 * t**3, t + 4 * t**2 - 3 * t**3, t**3 - t**2]
    )
    matrix = np.zeros((segments * _SPLINE_STEPS + (not closed), points))
    for segment in range(segments):
        rows = slice(segment * _SPLINE_STEPS, (segment + 1) * _SPLINE_STEPS)
        for tap in range(4):
            column = segment + tap - 1
            column = column % points if closed else min(max(column, 0), points - 1)
            matrix[rows, column] += weights[tap]
    if not closed:
        matrix[-1, -1] = 1.0
    return matrix


def curve(points: list[tuple[float, float]] | np.ndarray, *, closed: bool = False) -> np.ndarray:
    """Smooth curve through control points [n, 2]; returns its samples [m, 2]."""
    controls = np.asarray(points, dtype=float)
    smooth: np.ndarray = _spline_matrix(len(controls), closed) @ controls
    return smooth


def band(x: np.ndarray, top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    """Polygon [2 n, 2] of what lies between two functions of the same abscissae x [n]."""
    count = len(x)
    points = np.empty((2 * count, 2))
    points[:count, 0] = x
    points[:count, 1] = top
    points[count:, 0] = x[::-1]
    points[count:, 1] = bottom[::-1]
    return points


def moved(points: np.ndarray, x: float, y: float) -> np.ndarray:
    """Points [n, 2] moved by (x, y)."""
    shifted: np.ndarray = points + np.array((x, y))
    return shifted


def ellipse(x: float, y: float, width: float, height: float) -> np.ndarray:
    """Polygon [24, 2] of an ellipse with centre (x, y) and the given half-axes."""
    return _CIRCLE * (width, height) + (x, y)


def mirror(half: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Complete control points of the right half, top to bottom, by their mirror images.

    Points on the axis (x = 0) are not doubled.
    """
    return half + [(-x, y) for x, y in reversed(half) if x != 0.0]


class Canvas:
    """A square picture, drawn in face units.

    The origin of face units is the point between the eyes, x points right, y down, and the unit is
    the image's width. The canvas moves, scales and rolls them to the pose.

    Parameters
    ----------
    size : int
        Width and height of the finished image in pixels.
    shift : tuple of float
        Move of the face in shares of the image width.
    scale, roll : float
        Scale, and rotation in radians, of the face around the point between the eyes.
    """

    def __init__(self, size: int, *, shift: tuple[float, float], scale: float, roll: float) -> None:
        self._factor = _supersampling(size)
        self._pixels = size * self._factor
        self._unit = scale * self._pixels
        cosine, sine = self._unit * math.cos(roll), self._unit * math.sin(roll)
        self._rotation = np.array([[cosine, sine], [-sine, cosine]])
        self._origin = np.array(
            [(ANCHOR[0] + shift[0]) * self._pixels, (ANCHOR[1] + shift[1]) * self._pixels]
        )
        self._image = Image.new("RGB", (self._pixels, self._pixels))
        self._opaque = ImageDraw.Draw(self._image)
        self._blending = ImageDraw.Draw(self._image, "RGBA")

    def backdrop(self, corners: tuple[RGB, RGB, RGB, RGB]) -> None:
        """Fill the picture with a smooth blend of four corner colours."""
        tiny = np.array(corners).reshape(2, 2, 3).round().astype(np.uint8)
        side = (self._pixels + _COARSE - 1) // _COARSE
        smooth = Image.fromarray(tiny).resize((side, side), Image.Resampling.BILINEAR)
        # Steps of some supersampled pixels do not show in a smooth blend and cost little.
        coarse = smooth.resize(self._image.size, Image.Resampling.NEAREST)
        self._image.paste(coarse)

    def polygon(self, points: np.ndarray, colour: RGB, alpha: float = 1.0) -> None:
        """Fill the polygon [n, 2] with a colour at an opacity in [0, 1]."""
        # Pillow blends every pixel of a blending polygon, which takes four times as long.
        draw = self._opaque if alpha == 1.0 else self._blending
        draw.polygon(self._place(points), fill=_fill(colour, alpha))

    def line(self, points: np.ndarray, width: float, colour: RGB, alpha: float = 1.0) -> None:
        """Draw an open line [n, 2] of a width in face units."""
        pixels = max(1, round(width * self._unit))
        draw = self._opaque if alpha == 1.0 else self._blending
        draw.line(self._place(points), fill=_fill(colour, alpha), width=pixels)

    def glow(
        self, x: float, y: float, width: float, height: float, colour: RGB, alpha: float
    ) -> None:
        """Blend in a soft disc with centre (x, y), half-axes and an opacity at its centre."""
        centre_x, centre_y = self._place(np.array([[x, y]]))
        half_x = max(1, round(width * self._unit))
        half_y = max(1, round(height * self._unit))
        left, top = round(centre_x) - half_x, round(centre_y) - half_y
        box = (left, top, left + 2 * half_x, top + 2 * half_y)
        mask = _soft_ellipse(round(alpha * _SOFT_LEVELS), half_x, half_y)
        red, green, blue, _ = _fill(colour, 1.0)
        self._image.paste((red, green, blue), box, mask)

    def finish(self) -> Image.Image:
        """Return the picture [size, size], averaged over the supersampled pixels."""
        return self._image.reduce(self._factor)

    def _place(self, points: np.ndarray) -> list[float]:
        placed: list[float] = (points @ self._rotation + self._origin).ravel().tolist()
        return placed


def _supersampling(size: int) -> int:
    """How many canvas pixels make up one pixel of the picture, along each axis."""
    least = _FACTOR_LARGE if size >= _LARGE else _FACTOR
    return max(least, math.ceil(_MIN_PIXELS / size))


def _fill(colour: RGB, alpha: float) -> tuple[int, int, int, int]:
    red, green, blue = colour
    return round(red), round(green), round(blue), round(255 * alpha)
