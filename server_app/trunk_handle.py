# SPDX-License-Identifier: Apache-2.0
"""The server's handle on the trunk actor."""

from collections.abc import Mapping
from typing import Any

import ray
from ray.exceptions import RayActorError, RayTaskError
from torch import Tensor

from clients.trunk_link import NAMESPACE
from server_app.trunk_actor import Traffic, TrunkActor
from split import RefusedTensor, TrunkSpec, WireTensor
from strategies import Served, TrunkLost


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

    def check(self) -> None:
        self._call("device")

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
