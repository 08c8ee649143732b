# SPDX-License-Identifier: Apache-2.0
"""Images from bytes to what the edge takes, and the paper's augmentation."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def normalise(images_BHWC: NDArray[np.uint8]) -> Tensor:
    """``[B, 3, H, W]`` in [-1, 1] of uint8 ``[B, H, W, 3]``."""
    return torch.from_numpy(images_BHWC.transpose(0, 3, 1, 2).astype(np.float32) / 127.5 - 1.0)


def crop_and_flip(
    images_BHWC: NDArray[np.uint8], generator: np.random.Generator
) -> NDArray[np.uint8]:
    """Pad by 1/8 of the side with black, crop at random to the old size, flip half of them.

    The paper pads 224 pixels by 28.
    """
    batch, height, width, _ = images_BHWC.shape
    pad = height // 8
    padded = np.pad(images_BHWC, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    top, left = generator.integers(0, 2 * pad + 1, size=(2, batch))
    rows = top[:, None] + np.arange(height)
    columns = left[:, None] + np.arange(width)
    flipped = generator.random(batch) < 0.5
    columns[flipped] = columns[flipped, ::-1]
    sample = np.arange(batch)[:, None, None]
    cropped: NDArray[np.uint8] = padded[sample, rows[:, :, None], columns[:, None, :]]
    return cropped
