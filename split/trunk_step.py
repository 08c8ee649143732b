# SPDX-License-Identifier: Apache-2.0
"""The server's side of a step in plain torch: forward, backward, optimiser, checks, state.

A trunk meets its clients in one of two ways: ``shared``, all tensors of a step as one batch
through one model; or ``own``, each client's tensor through a model of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from split.average import weighted_mean
from split.model import ModelSpec
from split.optimise import OptimiserSpec, build_optimiser, export_moments, load_moments, step_at
from split.parts import Trunk, build_split, empty_split, pool_tokens
from split.seeds import derive_seed, seeded
from split.wire import WireDtype, WireTensor, decode, encode

Sharing = Literal["shared", "own"]


class RefusedTensor(ValueError):
    """The trunk will not use a client's tensor: wrong shape or dtype, or not finite."""

    def __init__(self, client: int, what: str) -> None:
        super().__init__(f"client {client}: {what}")
        self.client, self.what = client, what

    def __reduce__(self) -> tuple[type["RefusedTensor"], tuple[int, str]]:
        return type(self), (self.client, self.what)


@dataclass(frozen=True, kw_only=True)
class TrunkSpec:
    """What a trunk needs to know. ``returns`` is ``"pooled"`` or ``"all"``."""

    model: ModelSpec
    cut: int
    optimiser: OptimiserSpec
    returns: str
    wire_dtype: WireDtype
    sharing: Sharing = "shared"
    amp: bool = False
    threads: int = 0


@dataclass
class _Copy:
    """A trunk with its optimiser."""

    module: Trunk
    optimiser: torch.optim.Optimizer


@dataclass
class _Pending:
    """The graph of a forward that waits for its gradients."""

    outputs: dict[int, Tensor]
    inputs: dict[int, Tensor]


class TrunkStep:
    """A trunk in training.

    Parameters
    ----------
    spec : TrunkSpec
    device : torch.device
    weights : mapping, optional
        First weights instead of the model's own (a trunk under a column key).
    """

    def __init__(
        self,
        spec: TrunkSpec,
        device: torch.device,
        weights: Mapping[str, Tensor] | None = None,
    ) -> None:
        self.spec, self.device = spec, device
        if weights is None:
            first = build_split(spec.model, spec.cut).trunk.state_dict()
        else:
            first = dict(weights)
        self._copies = {-1: self._make_copy(first)}
        self._pending: dict[tuple[int, ...], _Pending] = {}

    # -- the two moves of the server ------------------------------------------------------

    def forward(
        self, smashed: Mapping[int, WireTensor], *, round: int, step: int
    ) -> dict[int, WireTensor]:
        """Hidden for each client's smashed data; keeps the graph for :meth:`backward`.

        Raises
        ------
        RefusedTensor
            Before anything is computed, if a tensor is not ``[B, N, D]``, of the wire's dtype
            and finite.
        """
        inputs = {client: self._admit(client, wire) for client, wire in sorted(smashed.items())}
        for tensor in inputs.values():
            tensor.requires_grad_()
        outputs = self._run(inputs, round, step, training=True)
        self._pending[tuple(inputs)] = _Pending(outputs, inputs)
        return {client: encode(hidden, self.spec.wire_dtype) for client, hidden in outputs.items()}

    def backward(
        self, gradients: Mapping[int, WireTensor], *, clients: tuple[int, ...], progress: float
    ) -> dict[int, WireTensor]:
        """Gradients of the smashed data, and one optimiser step.

        A client's loss is the mean over its own batch. In a shared trunk the step's loss is the
        mean over all samples that were answered for, so each client's gradient is weighted by
        its share of the samples, and what goes back to it is freed of that weight again.

        Parameters
        ----------
        gradients : mapping
            d loss / d hidden of each client that answered.
        clients : tuple of int
            The clients of the forward. Those that did not answer are left out.
        progress : float
            Share of the run that is done, for the learning rate.
        """
        pending = self._pending[tuple(sorted(clients))]
        received = {
            client: self._admit_gradient(client, wire, pending.outputs[client])
            for client, wire in sorted(gradients.items())
        }
        del self._pending[tuple(sorted(clients))]
        weights = self._weights({client: len(g) for client, g in received.items()})
        torch.autograd.backward(
            [pending.outputs[client] for client in received],
            [gradient * weights[client] for client, gradient in received.items()],
        )
        for copy in {id(c): c for c in map(self._copy_of, received)}.values():
            step_at(copy.optimiser, self.spec.optimiser, progress)
        answers = {}
        for client in received:
            gradient = pending.inputs[client].grad
            assert gradient is not None
            answers[client] = encode(gradient / weights[client], self.spec.wire_dtype)
        return answers

    def infer(self, smashed: Mapping[int, WireTensor]) -> dict[int, WireTensor]:
        """Hidden in evaluation, without a graph."""
        inputs = {client: self._admit(client, wire) for client, wire in sorted(smashed.items())}
        with torch.no_grad():
            outputs = self._run(inputs, 0, 0, training=False)
        return {client: encode(hidden, self.spec.wire_dtype) for client, hidden in outputs.items()}

    # -- rounds ---------------------------------------------------------------------------

    def begin_round(self, clients: tuple[int, ...]) -> None:
        """Forget unanswered graphs; under ``own``, give each client a copy of the trunk."""
        self._pending.clear()
        if self.spec.sharing == "own":
            main = self._copies[-1]
            moments = export_moments(main.optimiser, main.module)
            for client in clients:
                self._copies[client] = self._make_copy(main.module.state_dict(), moments)

    def end_round(self, weights: Mapping[int, float]) -> None:
        """Under ``own``, average the clients' copies (weights and moments) by ``weights``."""
        if self.spec.sharing == "own":
            used = {client: self._copies[client] for client in weights}
            states = {c: copy.module.state_dict() for c, copy in used.items()}
            moments = {c: export_moments(copy.optimiser, copy.module) for c, copy in used.items()}
            self._copies = {
                -1: self._make_copy(weighted_mean(states, weights), weighted_mean(moments, weights))
            }

    # -- state ----------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Weights and optimiser moments on the CPU, under their names."""
        main = self._copies[-1]
        moments = export_moments(main.optimiser, main.module)
        return _on_cpu(main.module.state_dict()), _on_cpu(moments)

    def load(self, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor]) -> None:
        """Go on from a :meth:`state`."""
        self._pending.clear()
        self._copies = {-1: self._make_copy(weights, moments)}

    # -- inside ---------------------------------------------------------------------------

    def _make_copy(
        self, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor] | None = None
    ) -> _Copy:
        module = empty_split(self.spec.model, self.spec.cut).trunk.to_empty(device=self.device)
        module.load_state_dict(dict(weights))
        optimiser = build_optimiser(self.spec.optimiser, module.parameters())
        load_moments(optimiser, module, moments or {})
        return _Copy(module, optimiser)

    def _copy_of(self, client: int) -> _Copy:
        return self._copies[client if self.spec.sharing == "own" else -1]

    def _weights(self, sizes: Mapping[int, int]) -> dict[int, float]:
        if self.spec.sharing == "own":
            return dict.fromkeys(sizes, 1.0)
        total = sum(sizes.values())
        return {client: size / total for client, size in sizes.items()}

    def _run(
        self, inputs: Mapping[int, Tensor], round: int, step: int, *, training: bool
    ) -> dict[int, Tensor]:
        # In evaluation one by one, so that the last bits do not depend on who else is there.
        joint_batch = self.spec.sharing == "shared" and training
        groups = [tuple(inputs)] if joint_batch else [(client,) for client in inputs]
        outputs: dict[int, Tensor] = {}
        for group in groups:
            module = self._copy_of(group[0]).module if training else self._copies[-1].module
            seed = derive_seed(self.spec.model.seed, "trunk", round, step, *group)
            joint = torch.cat([inputs[client] for client in group])
            amp = torch.autocast(self.device.type, torch.bfloat16, enabled=self.spec.amp)
            with seeded(seed, self.device), amp:
                hidden = self._pooled(module.train(training)(joint)).float()
            sizes = [len(inputs[client]) for client in group]
            outputs.update(zip(group, torch.split(hidden, sizes), strict=True))
        return outputs

    def _pooled(self, hidden_BND: Tensor) -> Tensor:
        if self.spec.returns == "all":
            return hidden_BND
        return pool_tokens(hidden_BND, self.spec.model.pool, self._copies[-1].module.prefix)

    def _admit(self, client: int, wire: WireTensor) -> Tensor:
        main = self._copies[-1].module
        shape = wire.payload.shape
        if len(shape) != 3 or shape[0] < 1 or shape[1:] != (main.tokens, main.dim):
            allowed = f"[batch, {main.tokens}, {main.dim}]"
            raise RefusedTensor(client, f"smashed data have shape {list(shape)}, not {allowed}")
        return self._decoded(client, wire, "smashed data")

    def _admit_gradient(self, client: int, wire: WireTensor, output: Tensor) -> Tensor:
        if wire.payload.shape != tuple(output.shape):
            what = f"gradient has shape {list(wire.payload.shape)}, not {list(output.shape)}"
            raise RefusedTensor(client, what)
        return self._decoded(client, wire, "gradient")

    def _decoded(self, client: int, wire: WireTensor, name: str) -> Tensor:
        expected = {"fp32": "float32", "fp16": "float16"}[self.spec.wire_dtype]
        if str(wire.payload.dtype) != expected:
            raise RefusedTensor(client, f"{name} are {wire.payload.dtype}, not {expected}")
        tensor = decode(wire).to(self.device)
        if not bool(torch.isfinite(tensor).all()):
            raise RefusedTensor(client, f"{name} hold NaN or infinity")
        return tensor


def _on_cpu(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in state.items()}
