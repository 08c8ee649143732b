# SPDX-License-Identifier: Apache-2.0
"""The trunk as a named Ray actor, and the server's handle on it."""

import os
import time
from collections.abc import Mapping
from typing import Any

import ray
import torch
from ray.exceptions import RayActorError, RayTaskError
from torch import Tensor

from clients.trunk_link import NAMESPACE
from split import RefusedTensor, TrunkSpec, TrunkStep, WireTensor
from strategies import Served, TrunkLost

Answer = tuple[dict[int, WireTensor], float, float]
Traffic = list[tuple[int, int, int, WireTensor]]
"""Recorded smashed data: (round, step, client, tensor)."""


class TrunkActor:
    """The Ray shell around :class:`split.TrunkStep`; clients and server call it by name."""

    def __init__(self, spec: TrunkSpec, weights: Mapping[str, Tensor] | None) -> None:
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


class RayTrunk:
    """The server's handle: calls become remote calls, and Ray's errors become the run's.

    Parameters
    ----------
    spec : TrunkSpec
    name : str
        The actor's name in namespace ``permsplit``; unique to the run.
    gpus : float
        GPUs to reserve; 0 puts the trunk on the CPU.
    weights : mapping, optional
        First weights instead of the model's own.
    timeout : float
        Seconds to wait for the actor to come up.

    Raises
    ------
    TrunkLost
        If the actor does not come up (no node has that many GPUs), or later dies.
    """

    def __init__(
        self,
        spec: TrunkSpec,
        *,
        name: str,
        gpus: float,
        weights: Mapping[str, Tensor] | None,
        timeout: float,
    ) -> None:
        self.name = name
        # Flower's worker pool takes all CPUs, so the trunk must ask for none.
        actor_class = ray.remote(num_cpus=0, num_gpus=gpus)(TrunkActor)
        self._actor: Any = actor_class.options(name=name, namespace=NAMESPACE).remote(
            spec, dict(weights) if weights is not None else None
        )
        try:
            self.device: str = ray.get(self._actor.device.remote(), timeout=timeout)
        except ray.exceptions.GetTimeoutError as error:
            self.close()
            raise TrunkLost(
                f"the trunk actor did not come up within {timeout:g} s: trunk-gpus = {gpus:g}, "
                f"the cluster has {ray.cluster_resources().get('GPU', 0):g} GPUs, "
                f"{ray.available_resources().get('GPU', 0):g} of them free"
            ) from error

    def forward(self, smashed: Mapping[int, WireTensor], round: int, step: int) -> Served:
        return Served(*self._call("forward", dict(smashed), round, step))

    def backward(
        self,
        gradients: Mapping[int, WireTensor],
        clients: tuple[int, ...],
        progress: float,
        answer: bool,
    ) -> Served:
        return Served(*self._call("backward", dict(gradients), clients, progress, answer))

    def infer(self, smashed: Mapping[int, WireTensor]) -> Served:
        return Served(*self._call("infer", dict(smashed)))

    def begin_round(self, clients: tuple[int, ...], record_steps: int) -> None:
        self._call("begin_round", clients, record_steps)

    def end_round(self, weights: Mapping[int, float]) -> None:
        self._call("end_round", dict(weights))

    def take_traffic(self) -> Traffic:
        """Recorded smashed data of the round."""
        taken: Traffic = self._call("take_traffic")
        return taken

    def state(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Weights and moments."""
        state: tuple[dict[str, Tensor], dict[str, Tensor]] = self._call("state")
        return state

    def load(self, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor]) -> None:
        """Go on from a state."""
        self._call("load", dict(weights), dict(moments))

    def close(self) -> None:
        """Stop the actor."""
        ray.kill(self._actor, no_restart=True)

    def _call(self, method: str, *arguments: object) -> Any:
        try:
            return ray.get(getattr(self._actor, method).remote(*arguments))
        except RayActorError as error:
            raise TrunkLost(f"the trunk actor died in {method}: {error}") from error
        except RayTaskError as error:
            if isinstance(error.cause, RefusedTensor):
                raise error.cause from None
            raise
