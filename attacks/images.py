# SPDX-License-Identifier: Apache-2.0
"""Images on their way through an attack: uint8 as stored, [-1, 1] as learned, [0, 1] as scored."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from split import derive_seed

__all__ = ["mirrored", "to_unit", "unit_images"]


def to_unit(pixels: Tensor) -> Tensor:
    """Pixels around [-1, 1], as the edge takes them, to [0, 1], as metrics do; cut off there."""
    return (pixels / 2 + 0.5).clamp(0, 1)


def unit_images(images_BHWC: NDArray[np.uint8]) -> Tensor:
    """``[B, 3, H, W]`` in [0, 1] of uint8 ``[B, H, W, 3]``."""
    return torch.from_numpy(images_BHWC.transpose(0, 3, 1, 2).astype(np.float32) / 255)


def mirrored(images_BHWC: NDArray[np.uint8], seed: int) -> NDArray[np.uint8]:
    """Half of the images, drawn from ``seed``, with left and right swapped."""
    flip = np.random.default_rng(derive_seed(seed, "mirror")).random(len(images_BHWC)) < 0.5
    result = images_BHWC.copy()
    result[flip] = result[flip, :, ::-1]
    return result
