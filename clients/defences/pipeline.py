# SPDX-License-Identifier: Apache-2.0
"""The defences of a run in their declared order, at their declared point."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from clients.defences.base import Defence
from clients.defences.bs import BatchShuffle
from clients.defences.gn import GaussianNoise
from clients.defences.lp import LowPass
from config import Problem, RunConfig
from split import ModelError, ModelSpec
from split.model import shape_of

DEFENCES: dict[str, type[Defence]] = {
    cls.name: cls for cls in (GaussianNoise, LowPass, BatchShuffle)
}

Seeds = Callable[[int], int]
"""Gives the seed of the defence at an index of the pipeline, for one batch."""


def parse_defences(text: str) -> tuple[Defence, ...]:
    """The defences of a text such as ``"lp:0.05,gn:0.5"``, in its order.

    Raises
    ------
    ValueError
        Naming the part that is wrong and what is allowed.
    """
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    defences = []
    for part in parts:
        name, colon, strength = part.partition(":")
        if name not in DEFENCES or not colon:
            allowed = ", ".join(f"{known}:NUMBER" for known in sorted(DEFENCES))
            raise ValueError(f"{part!r} is no defence; allowed is a comma list of {allowed}")
        defences.append(DEFENCES[name].parse(strength))
    return tuple(defences)


@dataclass(frozen=True)
class DefencePipeline:
    """All defences of a run: one object for training, evaluation and attack.

    Parameters
    ----------
    defences : tuple of Defence
    point : str
        ``"pixels"`` or ``"embedding"`` (the patch tokens at the cut).
    patch : int
        Side of a patch in pixels.
    grid : (int, int)
        Rows and columns of patches.
    prefix : int
        Prefix tokens (CLS, registers) before the patch tokens.
    """

    defences: tuple[Defence, ...]
    point: str
    patch: int
    grid: tuple[int, int]
    prefix: int

    def on_pixels(self, images_BCHW: Tensor, seeds: Seeds) -> Tensor:
        """Images as the edge sees them."""
        if self.point == "pixels":
            for index, defence in enumerate(self.defences):
                generator = torch.Generator().manual_seed(seeds(index))
                images_BCHW = defence.apply(images_BCHW, generator, cell=self.patch)
        return images_BCHW

    def on_tokens(self, tokens_BND: Tensor, seeds: Seeds) -> Tensor:
        """Tokens ``[B, N, D]`` as they are permuted and sent."""
        if self.point != "embedding" or not self.defences:
            return tokens_BND
        prefix, patches = tokens_BND[:, : self.prefix], tokens_BND[:, self.prefix :]
        grid = patches.transpose(1, 2).reshape(len(patches), -1, *self.grid)
        for index, defence in enumerate(self.defences):
            generator = torch.Generator().manual_seed(seeds(index))
            grid = defence.apply(grid, generator, cell=1)
            prefix = defence.apply_prefix(prefix, generator)
        return torch.cat([prefix, grid.flatten(2).transpose(1, 2)], dim=1)


@lru_cache(maxsize=32)
def build_pipeline(config: RunConfig) -> DefencePipeline:
    """The pipeline that a run's configuration asks for: one object in a process, for all uses."""
    vit = shape_of(ModelSpec.of(config))
    return DefencePipeline(
        defences=parse_defences(config.defences),
        point=config.defence_point,
        patch=vit.patch_embed.patch_size[0],
        grid=tuple(vit.patch_embed.grid_size),
        prefix=vit.num_prefix_tokens,
    )


def check_defences(config: RunConfig) -> Iterator[Problem]:
    """Problems of the defence keys: a rule for ``parse_run_config``."""
    try:
        defences = parse_defences(config.defences)
    except ValueError as error:
        yield Problem("defences", config.defences, str(error))
        return
    try:
        grid = shape_of(ModelSpec.of(config)).patch_embed.grid_size[0]
    except ModelError:
        return  # the model's own rule says it
    side = config.image_size if config.defence_point == "pixels" else grid
    for defence in defences:
        if wrong := defence.fits(side):
            yield Problem("defences", config.defences, wrong)
