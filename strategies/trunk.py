# SPDX-License-Identifier: Apache-2.0
"""What a strategy asks of a trunk, wherever it runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from split import WireTensor


@dataclass(frozen=True)
class Served:
    """A trunk's answers, and when the work began and ended (seconds since 1970)."""

    answers: dict[int, WireTensor]
    began: float
    ended: float


class TrunkHandle(Protocol):
    """A trunk in training; see :class:`split.TrunkStep` for shapes and errors."""

    @property
    def name(self) -> str:
        """The actor's name, for clients that call it themselves."""

    def forward(self, smashed: Mapping[int, WireTensor], round: int, step: int) -> Served:
        """Hidden for smashed data."""

    def backward(
        self,
        gradients: Mapping[int, WireTensor],
        clients: tuple[int, ...],
        progress: float,
        answer: bool,
    ) -> Served:
        """Gradients of smashed data (if ``answer``), and one optimiser step."""

    def infer(self, smashed: Mapping[int, WireTensor]) -> Served:
        """Hidden in evaluation."""

    def begin_round(self, clients: tuple[int, ...], record_steps: int) -> None:
        """Forget open graphs; make copies; keep the smashed data of the first steps."""

    def check(self) -> None:
        """Raise :class:`strategies.errors.TrunkLost` if the trunk is gone."""

    def end_round(self, weights: Mapping[int, float]) -> None:
        """Average copies."""
