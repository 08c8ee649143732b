# SPDX-License-Identifier: Apache-2.0
"""What a defence is: a seeded, differentiable map of a grid of cells."""

from abc import ABC, abstractmethod
from typing import ClassVar, Self

import torch
from torch import Tensor


class Defence(ABC):
    """A distortion of what a client shows, applied before the permutation.

    A defence sees a grid ``[B, C, H, W]``: the image's pixels, or the patch tokens at the cut
    laid out as the image (C features). It is the same object in training, evaluation and attack.

    Attributes
    ----------
    name : str
        Its name in the run key ``defences``.
    strength : float
        Its one parameter.
    """

    name: ClassVar[str]
    allowed: ClassVar[str]

    def __init__(self, strength: float) -> None:
        self.strength = strength

    @classmethod
    def parse(cls, text: str) -> Self:
        """The defence of a text such as ``0.5``.

        Raises
        ------
        ValueError
            If the text is no number, or not in the allowed range.
        """
        try:
            strength = float(text)
        except ValueError:
            strength = float("nan")
        if not cls.accepts(strength):
            raise ValueError(f"{cls.name}:{text} is not allowed; {cls.name} takes {cls.allowed}")
        return cls(strength)

    @classmethod
    @abstractmethod
    def accepts(cls, strength: float) -> bool:
        """Whether ``strength`` is in range (False for NaN)."""

    def fits(self, side: int) -> str | None:
        """What is wrong with this defence on a grid of ``side`` cells a side, or None."""
        return None

    @abstractmethod
    def apply(self, grid_BCHW: Tensor, generator: torch.Generator, *, cell: int) -> Tensor:
        """The distorted grid; all chance comes from ``generator``. A patch is ``cell`` wide."""

    def apply_prefix(self, prefix_BPD: Tensor, generator: torch.Generator) -> Tensor:
        """What happens to prefix tokens (CLS, registers) at the cut; by default nothing."""
        return prefix_BPD

    def __str__(self) -> str:
        return f"{self.name}:{self.strength:g}"
