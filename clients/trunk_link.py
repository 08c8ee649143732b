# SPDX-License-Identifier: Apache-2.0
"""Transport ``ray``: a client's calls to the named trunk actor, with their cost counted."""

import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import ray

from split import WireTensor

NAMESPACE = "permsplit"


@dataclass
class Legs:
    """Bytes, seconds, messages and images of each leg of a client's traffic in one round."""

    bytes: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    messages: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    images: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, leg: str, seconds: float, wire: WireTensor | None = None) -> None:
        """Count one tensor on its way, or (without a tensor) the trunk's work."""
        self.bytes[leg] += wire.nbytes if wire else 0
        self.seconds[leg] += max(seconds, 0.0)
        self.messages[leg] += 1
        self.images[leg] += len(wire.payload) if wire else 0

    def fields(self) -> dict[str, int | float]:
        """As metrics, ``<leg>/bytes`` and so on."""
        return {
            f"{leg}/{name}": value
            for name, values in (
                ("bytes", self.bytes),
                ("seconds", self.seconds),
                ("messages", self.messages),
                ("images", self.images),
            )
            for leg, value in values.items()
        }


class TrunkLink:
    """A client's side of the named trunk actor.

    Parameters
    ----------
    actor_name : str
    client : int
        Whose tensors these are.
    """

    def __init__(self, actor_name: str, client: int) -> None:
        self._actor: Any = ray.get_actor(actor_name, namespace=NAMESPACE)
        self.client = client
        self.legs = Legs()

    def forward(self, smashed: WireTensor, round: int, step: int) -> WireTensor:
        """Hidden of smashed data."""
        hidden: WireTensor = self._call(
            ("smashed", "hidden"), self._actor.forward, {self.client: smashed}, round, step
        )
        return hidden

    def backward(
        self, gradient: WireTensor, progress: float, *, answer: bool = True
    ) -> WireTensor | None:
        """Gradient of the smashed data for that of hidden; the trunk's optimiser steps."""
        legs = ("hidden-gradient", "smashed-gradient" if answer else "")
        given: WireTensor | None = self._call(
            legs, self._actor.backward, {self.client: gradient}, (self.client,), progress, answer
        )
        return given

    def infer(self, smashed: WireTensor) -> WireTensor:
        """Hidden in evaluation."""
        hidden: WireTensor = self._call(
            ("evaluate-smashed", "evaluate-hidden"), self._actor.infer, {self.client: smashed}
        )
        return hidden

    def _call(self, legs: tuple[str, str], method: Any, sent: Any, *arguments: Any) -> Any:
        began = time.time()
        answers, received_at, replied_at = ray.get(method.remote(sent, *arguments))
        ended = time.time()
        self.legs.add(legs[0], received_at - began, sent[self.client])
        self.legs.add("trunk-compute", replied_at - received_at)
        if not legs[1]:
            return None
        answer = answers[self.client]
        self.legs.add(legs[1], ended - replied_at, answer)
        return answer
