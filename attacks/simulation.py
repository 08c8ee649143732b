# SPDX-License-Identifier: Apache-2.0
"""What an attacker does itself once it knows edge and defence: tokens of images, not permuted."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attacks.view import View
from clients.augment import normalise
from split import derive_seed

__all__ = ["simulate"]


@torch.no_grad()
def simulate(view: View, images_BHWC: NDArray[np.uint8], seed: int) -> Tensor:
    """Tokens ``[B, N, D]`` of images, defended with the attacker's own randomness, in edge order.

    Needs the grants ``edge`` and ``defence``.
    """

    def seeds(index: int) -> int:
        return derive_seed(seed, "defence", index)

    pixels = view.defence.on_pixels(normalise(images_BHWC), seeds)
    return view.defence.on_tokens(view.edge(pixels), seeds)
