# SPDX-License-Identifier: Apache-2.0
"""The trunk as a named Ray actor.

Its process imports this file: nothing here needs Flower, so that it is up soon.
"""

import os
import time
from collections.abc import Mapping

import ray
import torch
from torch import Tensor

from server_app.heap import keep_freed_memory
from split import TrunkSpec, TrunkStep, WireTensor

Answer = tuple[dict[int, WireTensor], float, float]
Traffic = list[tuple[int, int, int, WireTensor]]
"""Recorded smashed data: (round, step, client, tensor)."""


class TrunkActor:
    """The Ray shell around :class:`split.TrunkStep`; clients and server call it by name."""

    def __init__(self, spec: TrunkSpec, weights: Mapping[str, Tensor] | None) -> None:
        keep_freed_memory()
        # Ray sets OMP_NUM_THREADS=1 for actors that ask for no CPU.
        torch.set_num_threads(spec.threads or os.cpu_count() or 1)
        cuda = bool(ray.get_gpu_ids()) and torch.cuda.is_available()
        self._step = TrunkStep(spec, torch.device("cuda" if cuda else "cpu"), weights)
        self._record_steps, self._traffic = 0, Traffic()

    def device(self) -> str:
        """Where the trunk runs."""
        cuda = self._step.device.type == "cuda"
        return torch.cuda.get_device_name() if cuda else "cpu"

    def forward(self, smashed: Mapping[int, WireTensor], round: int, step: int) -> Answer:
        """See :meth:`split.TrunkStep.forward`."""
        began = time.time()
        answers = self._step.forward(smashed, round=round, step=step)
        if step < self._record_steps:
            self._traffic += [(round, step, client, wire) for client, wire in smashed.items()]
        return answers, began, time.time()

    def backward(
        self,
        gradients: Mapping[int, WireTensor],
        clients: tuple[int, ...],
        progress: float,
        answer: bool,
    ) -> Answer:
        """See :meth:`split.TrunkStep.backward`."""
        began = time.time()
        answers = self._step.backward(gradients, clients=clients, progress=progress)
        return answers if answer else {}, began, time.time()

    def infer(self, smashed: Mapping[int, WireTensor]) -> Answer:
        """See :meth:`split.TrunkStep.infer`."""
        began = time.time()
        return self._step.infer(smashed), began, time.time()

    def begin_round(self, clients: tuple[int, ...], record_steps: int) -> None:
        """See :meth:`split.TrunkStep.begin_round`; record the first steps' smashed data."""
        self._step.begin_round(clients)
        self._record_steps, self._traffic = record_steps, Traffic()

    def end_round(self, weights: Mapping[int, float]) -> None:
        """See :meth:`split.TrunkStep.end_round`."""
        self._step.end_round(weights)

    def take_traffic(self) -> Traffic:
        """What was recorded since the round began; forgets it."""
        taken, self._traffic = self._traffic, Traffic()
        return taken

    def state(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """See :meth:`split.TrunkStep.state`."""
        return self._step.state()

    def load(self, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor]) -> None:
        """See :meth:`split.TrunkStep.load`."""
        self._step.load(weights, moments)
