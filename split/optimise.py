# SPDX-License-Identifier: Apache-2.0
"""Optimisers and their schedule: the same for edge, trunk and tail, each with its own rates."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True, kw_only=True)
class OptimiserSpec:
    """One part's optimiser.

    Parameters
    ----------
    kind : str
        ``"sgd"`` (with ``momentum`` and L2 ``weight_decay``) or ``"adamw"`` (decoupled decay).
    lr_start, lr_end : float
        Ends of the cosine; each part has its own end (one shared ``eta_min`` would leave the
        parts with small rates almost constant).
    """

    kind: str
    lr_start: float
    lr_end: float
    momentum: float = 0.9
    weight_decay: float = 0.0


def learning_rate(spec: OptimiserSpec, progress: float) -> float:
    """Cosine from ``lr_start`` at progress 0 to ``lr_end`` at progress 1 of the run."""
    return spec.lr_end + (spec.lr_start - spec.lr_end) * 0.5 * (1 + math.cos(math.pi * progress))


def build_optimiser(
    spec: OptimiserSpec, parameters: Iterable[nn.Parameter]
) -> torch.optim.Optimizer:
    """The torch optimiser of ``spec`` over ``parameters``."""
    if spec.kind == "sgd":
        return torch.optim.SGD(
            parameters, lr=spec.lr_start, momentum=spec.momentum, weight_decay=spec.weight_decay
        )
    return torch.optim.AdamW(parameters, lr=spec.lr_start, weight_decay=spec.weight_decay)


def step_at(optimiser: torch.optim.Optimizer, spec: OptimiserSpec, progress: float) -> None:
    """One optimiser step at the rate of ``progress``; clears the gradients."""
    for group in optimiser.param_groups:
        group["lr"] = learning_rate(spec, progress)
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)


def export_moments(optimiser: torch.optim.Optimizer, module: nn.Module) -> dict[str, Tensor]:
    """The optimiser's state as named tensors ``"<parameter>:<moment>"``, for safetensors."""
    moments = {}
    for name, parameter in module.named_parameters():
        for moment, value in optimiser.state.get(parameter, {}).items():
            if value is not None:
                moments[f"{name}:{moment}"] = torch.as_tensor(value).detach().clone()
    return moments


def load_moments(
    optimiser: torch.optim.Optimizer, module: nn.Module, moments: Mapping[str, Tensor]
) -> None:
    """Put back what :func:`export_moments` gave. Parameters without moments start fresh."""
    parameters = dict(module.named_parameters())
    for key, value in moments.items():
        name, _, moment = key.rpartition(":")
        parameter = parameters[name]
        # AdamW counts its steps on the CPU whatever the parameter's device.
        target = "cpu" if moment == "step" else parameter.device
        optimiser.state[parameter][moment] = value.detach().clone().to(target)
