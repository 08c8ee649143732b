# SPDX-License-Identifier: Apache-2.0
"""Textured shapes: a small image set that is computed, the offline default of image experiments.

Every image shows one of ten shapes at a random place, size and angle, filled with a random texture
in two random colours, before a background that shades from one dim colour to another, under
noise. The label is the shape; the mask says which pixels belong to it. All follows from the seed.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

__all__ = ["SHAPES", "draw_shapes"]

Grid = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

SHAPES: dict[str, Callable[[Grid, Grid], Mask]] = {
    "disc": lambda u, v: u**2 + v**2 < 0.8,
    "ring": lambda u, v: (u**2 + v**2 < 1) & (u**2 + v**2 > 0.35),
    "square": lambda u, v: np.maximum(abs(u), abs(v)) < 0.8,
    "frame": lambda u, v: (np.maximum(abs(u), abs(v)) < 0.9) & (np.maximum(abs(u), abs(v)) > 0.5),
    "triangle": lambda u, v: (v > -0.6) & (v + 1.7 * abs(u) < 0.9),
    "plus": lambda u, v: (np.minimum(abs(u), abs(v)) < 0.3) & (np.maximum(abs(u), abs(v)) < 1),
    "bar": lambda u, v: (abs(u) < 1) & (abs(v) < 0.28),
    "bars": lambda u, v: (abs(u) < 1) & (abs(abs(v) - 0.6) < 0.25),
    "crescent": lambda u, v: (u**2 + v**2 < 1) & ((u - 0.55) ** 2 + v**2 > 0.6),
    "half-disc": lambda u, v: (u**2 + v**2 < 1) & (v > 0),
}
"""Predicates on coordinates of the shape's own frame, in which it fills about -1 .. 1."""

_TEXTURES: tuple[Callable[[Grid, Grid], Mask], ...] = (
    lambda x, y: np.ones_like(x, dtype=np.bool_),
    lambda x, y: np.floor(x) % 2 == 0,
    lambda x, y: np.floor(y) % 2 == 0,
    lambda x, y: (np.floor(x) + np.floor(y)) % 2 == 0,
    lambda x, y: (x % 2 - 1) ** 2 + (y % 2 - 1) ** 2 < 0.5,
)


def draw_shapes(count: int, size: int, *, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Draw images with all shapes equally often.

    Parameters
    ----------
    count, size : int
        Images, and the side of each in pixels.
    seed : int
        Image `i` is a function of the seed, `i` and the size alone.

    Returns
    -------
    images : Tensor
        [count, 3, size, size], uint8.
    labels : Tensor
        [count], int64: index in `SHAPES`.
    masks : Tensor
        [count, size, size], int64: 0 background, 1 + label the shape.
    """
    images = np.empty((count, 3, size, size), dtype=np.uint8)
    labels = np.arange(count) % len(SHAPES)
    masks = np.zeros((count, size, size), dtype=np.int64)
    predicates = tuple(SHAPES.values())
    for index in range(count):
        random = np.random.default_rng((seed, index, size))
        image, inside = _draw(predicates[labels[index]], size, random)
        images[index] = image
        masks[index, inside] = 1 + labels[index]
    return torch.from_numpy(images), torch.from_numpy(labels), torch.from_numpy(masks)


def _draw(
    predicate: Callable[[Grid, Grid], Mask], size: int, random: np.random.Generator
) -> tuple[npt.NDArray[np.uint8], Mask]:
    y, x = np.mgrid[0:size, 0:size] * (2 / (size - 1)) - 1
    cx, cy = random.uniform(-0.15, 0.15, size=2)
    scale, angle = random.uniform(0.6, 0.8), random.uniform(0, 0.25)
    cosine, sine = np.cos(angle), np.sin(angle)
    u = (cosine * (x - cx) + sine * (y - cy)) / scale
    v = (cosine * (y - cy) - sine * (x - cx)) / scale
    inside = predicate(u, v)
    texture = _TEXTURES[random.integers(len(_TEXTURES))]
    period = random.uniform(0.15, 0.3)
    marks = texture(x / period, y / period)
    bright, middle = random.uniform(0.6, 1, size=(3, 1, 1)), random.uniform(0.35, 0.6, (3, 1, 1))
    left, right = random.uniform(0, 0.3, size=(2, 3, 1, 1))
    background = left + (right - left) * (x + 1) / 2
    image = np.where(inside, np.where(marks, bright, middle), background)
    image = image + random.normal(0, 0.04, size=(3, size, size))
    return (image.clip(0, 1) * 255).round().astype(np.uint8), inside
