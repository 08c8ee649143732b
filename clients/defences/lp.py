# SPDX-License-Identifier: Apache-2.0
"""``lp:RADIUS``: a low-pass filter in the Fourier plane."""

import torch
from torch import Tensor

from clients.defences.base import Defence


class LowPass(Defence):
    """Keep the square of frequencies -h .. h-1 in both directions, h = floor(radius * side).

    This is the mask of the paper's code: radius 0.05 at 224 pixels keeps 22 x 22 of 224 x 224.
    The mask is not symmetric, so the filtered picture is complex; its real part is used.
    """

    name = "lp"
    allowed = "radius, a number > 0 and <= 0.5"

    @classmethod
    def accepts(cls, strength: float) -> bool:
        return 0 < strength <= 0.5

    def fits(self, side: int) -> str | None:
        if self._half(side) >= 1:
            return None
        return f"{self} keeps no frequency of a grid {side} wide; use a radius >= {1 / side:.3g}"

    def apply(self, grid_BCHW: Tensor, generator: torch.Generator, *, cell: int) -> Tensor:
        spectrum = torch.fft.fft2(grid_BCHW)
        rows, columns = (self._kept(side, grid_BCHW.device) for side in grid_BCHW.shape[-2:])
        filtered: Tensor = torch.fft.ifft2(spectrum * rows[:, None] * columns).real
        return filtered

    def _half(self, side: int) -> int:
        # The small addend keeps 0.05 * 20 from flooring to 0.
        return int(self.strength * side + 1e-9)

    def _kept(self, side: int, device: torch.device) -> Tensor:
        half = self._half(side)
        frequency = torch.fft.fftfreq(side, 1 / side, device=device).round()
        kept: Tensor = (frequency >= -half) & (frequency < half)
        return kept.float()
