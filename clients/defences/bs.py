# SPDX-License-Identifier: Apache-2.0
"""``bs:KEEP``: batch shuffle, patches swapped among the samples of a batch."""

import torch
from torch import Tensor

from clients.defences.base import Defence
from split.patches import fold_patches, unfold_patches


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
        patches_BND = unfold_patches(grid_BCHW, cell)
        batch, count, _ = patches_BND.shape
        moved = count - round(self.strength * count)
        places = torch.rand(batch, count, generator=generator).argsort(dim=1)[:, :moved]
        slots = (places + count * torch.arange(batch)[:, None]).flatten()
        source = torch.arange(batch * count)
        source[slots] = slots[torch.randperm(len(slots), generator=generator)]
        flat = patches_BND.flatten(0, 1)[source.to(grid_BCHW.device)]
        return fold_patches(flat.view_as(patches_BND), cell, *grid_BCHW.shape[2:])
