# SPDX-License-Identifier: Apache-2.0
"""``bs:KEEP``: batch shuffle, patches swapped among the samples of a batch."""

import torch
from torch import Tensor

from clients.defences.base import Defence


class BatchShuffle(Defence):
    """Each sample keeps a random share of its patches in place; the others are pooled over the
    batch and dealt out again at random, to any sample and any of the freed places.

    After "Privacy-Preserving Split Learning via Patch Shuffling over Transformers" (ICDM 2022),
    where ``k`` is the share that is not shuffled. The shuffle is not undone: it is distortion. It
    depends on the batch, in evaluation too; a batch of one is shuffled within itself.
    """

    name = "bs"
    allowed = "keep, the share of patches left in place, >= 0 and <= 1"

    @classmethod
    def accepts(cls, strength: float) -> bool:
        return 0 <= strength <= 1

    def apply(self, grid_BCHW: Tensor, generator: torch.Generator, *, cell: int) -> Tensor:
        patches_BND = _patches(grid_BCHW, cell)
        batch, count, _ = patches_BND.shape
        moved = count - round(self.strength * count)
        places = torch.rand(batch, count, generator=generator).argsort(dim=1)[:, :moved]
        slots = (places + count * torch.arange(batch)[:, None]).flatten()
        source = torch.arange(batch * count)
        source[slots] = slots[torch.randperm(len(slots), generator=generator)]
        flat = patches_BND.flatten(0, 1)[source.to(grid_BCHW.device)]
        return _grid(flat.view_as(patches_BND), grid_BCHW.shape, cell)


def _patches(grid_BCHW: Tensor, cell: int) -> Tensor:
    """``[B, patches, values]`` of a grid whose patches are ``cell`` wide."""
    batch, channels, height, width = grid_BCHW.shape
    cells = grid_BCHW.view(batch, channels, height // cell, cell, width // cell, cell)
    return cells.permute(0, 2, 4, 1, 3, 5).reshape(
        batch, (height // cell) * (width // cell), channels * cell * cell
    )


def _grid(patches_BND: Tensor, shape: torch.Size, cell: int) -> Tensor:
    """The inverse of :func:`_patches`."""
    batch, channels, height, width = shape
    cells = patches_BND.view(batch, height // cell, width // cell, channels, cell, cell)
    return cells.permute(0, 3, 1, 4, 2, 5).reshape(shape)
