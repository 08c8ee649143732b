# SPDX-License-Identifier: Apache-2.0
"""``gn:SIGMA``: additive Gaussian noise."""

import math

import torch
from torch import Tensor

from clients.defences.base import Defence


class GaussianNoise(Defence):
    """x + sigma * n, n standard normal, in units of the grid (pixels lie in [-1, 1], unclipped)."""

    name = "gn"
    allowed = "sigma, a finite number >= 0"

    @classmethod
    def accepts(cls, strength: float) -> bool:
        return math.isfinite(strength) and strength >= 0

    def apply(self, grid_BCHW: Tensor, generator: torch.Generator, *, cell: int) -> Tensor:
        return self._noisy(grid_BCHW, generator)

    def apply_prefix(self, prefix_BPD: Tensor, generator: torch.Generator) -> Tensor:
        return self._noisy(prefix_BPD, generator)

    def _noisy(self, x: Tensor, generator: torch.Generator) -> Tensor:
        noise = torch.randn(x.shape, generator=generator, dtype=x.dtype)
        return x + self.strength * noise.to(x.device)
