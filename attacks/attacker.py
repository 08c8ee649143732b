# SPDX-License-Identifier: Apache-2.0
"""What an attacker is, and what it finds."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from attacks.threat import ThreatModel
from attacks.view import Geometry, View

__all__ = ["AttackOptions", "Attacker", "Finding", "Progress", "Workshop"]

Progress = Callable[[str, int, int], None]
"""``progress(stage, done, total)``."""


@dataclass(frozen=True, kw_only=True)
class AttackOptions:
    """What a user may choose about an attack.

    Parameters
    ----------
    images : int
        Number of victims at most.
    epochs : int
        Epochs of learning attackers (and steps of ``optimise``); 0: the attacker's own default.
    seed : int
        All of the attacker's randomness derives from it.
    client : int, optional
        The victims' client, -1 for all; None: as :class:`attacks.scene.Scene` chooses.
    face : str
        Network of F-SIM, as :func:`attacks.metrics.face_embedder` takes it; empty: no F-SIM.
    metrics : str
        Comma list of keys of :data:`attacks.metrics.IMAGE_METRICS`.
    """

    images: int = 256
    epochs: int = 0
    seed: int = 0
    client: int | None = None
    face: str = ""
    metrics: str = "ssim,psnr,ssim_paper,psnr_paper"


@dataclass(frozen=True)
class Workshop:
    """Where an attacker works.

    Parameters
    ----------
    folder : Path
        Holds what it has learned so far, so that it can go on.
    device : torch.device
    options : AttackOptions
    progress : callable
    """

    folder: Path
    device: torch.device
    options: AttackOptions
    progress: Progress


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What an attacker makes of the victims' smashed data; None where it does not try.

    Parameters
    ----------
    variant : str
        Which of its ways; ``""`` if it has one.
    images : Tensor, optional
        Reconstructions [M, 3, H, W] in [0, 1].
    places : Tensor, optional
        For each received token the token of the edge it is taken for, [M, N].
    scores : Tensor, optional
        Logits of the attributes, [M, K].
    """

    variant: str = ""
    images: Tensor | None = None
    places: Tensor | None = None
    scores: Tensor | None = None


class Attacker(ABC):
    """One way to attack. It works on a :class:`View` alone.

    Attributes
    ----------
    name : str
    threats : tuple of ThreatModel
        The threat models it is run under, one after another.
    learns : bool
        Whether :meth:`learn` changes what it finds, so that an untrained floor makes sense.
    """

    name: ClassVar[str]
    threats: ClassVar[tuple[ThreatModel, ...]]
    learns: ClassVar[bool] = True

    def __init__(self, view: View, shop: Workshop) -> None:
        self.view, self.shop = view, shop

    @classmethod
    def unfit(cls, geometry: Geometry) -> str | None:
        """Why it cannot attack such a model, or None."""
        return None

    @abstractmethod
    def learn(self) -> None:
        """Learn from what the view grants besides the victims."""

    @abstractmethod
    def attack(self) -> list[Finding]:
        """What it makes of the victims' smashed data, one finding for each of its ways."""
