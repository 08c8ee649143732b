# SPDX-License-Identifier: Apache-2.0
"""Training and evaluation of a classifier, dense or not, that a permuted twin repeats exactly."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from equivariance.experiments.examples import Batch, Examples, batches, sequential
from equivariance.experiments.options import Options

__all__ = [
    "Loss",
    "Measured",
    "TrainingOptions",
    "cross_entropy",
    "evaluate",
    "gradients",
    "scores",
    "train",
]

Loss = Callable[[nn.Module, Batch], Tensor]


class TrainingOptions(Options):
    """How a model is trained. There is no dropout: its mask would have to be permuted too."""

    steps: int = Field(300, ge=0, description="Optimiser steps.")
    batch_size: int = Field(32, ge=1, description="Examples of a step.")
    optimizer: Literal["adamw", "sgd"] = Field("adamw", description="sgd has momentum 0.9.")
    lr: float = Field(2e-3, gt=0, description="Learning rate, falling to zero along a cosine.")
    weight_decay: float = Field(0.01, ge=0, description="Weight decay.")
    clip: float = Field(1.0, ge=0, description="Largest norm of a step's gradient; 0: any.")


@dataclass(frozen=True)
class Measured:
    """A score and the outputs it was computed from, float, [M, ...]."""

    score: float
    outputs: Tensor


def train(
    model: nn.Module, examples: Examples, options: TrainingOptions, *, loss: Loss | None = None
) -> None:
    """Train all parameters that want gradients, in place.

    Clipping by the norm of all gradients and optimisers that work entry by entry commute with
    permutations, so a conjugated model takes the conjugated steps.
    """
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimiser = _optimiser(parameters, options)
    steps = batches(
        examples,
        size=options.batch_size,
        steps=options.steps,
        seed=options.seed,
        device=options.device,
    )
    model.train()
    for step, batch in enumerate(steps):
        for group in optimiser.param_groups:
            group["lr"] = options.lr * (1 + math.cos(math.pi * step / options.steps)) / 2
        optimiser.zero_grad()
        (loss or cross_entropy)(model, batch).backward()  # type: ignore[no-untyped-call]
        if options.clip:
            nn.utils.clip_grad_norm_(parameters, options.clip)
        optimiser.step()
    model.eval()


def cross_entropy(model: nn.Module, batch: Batch) -> Tensor:
    """Mean cross-entropy of class scores [B, classes, ...] against labels [B, ...]."""
    inputs, labels = batch
    return functional.cross_entropy(scores(model(**inputs)), labels)


def gradients(
    model: nn.Module, examples: Examples, options: TrainingOptions, *, loss: Loss | None = None
) -> dict[str, Tensor]:
    """Return the gradient of the first batch's loss, by parameter name."""
    (batch,) = batches(
        examples, size=options.batch_size, steps=1, seed=options.seed, device=options.device
    )
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    found = torch.autograd.grad((loss or cross_entropy)(model, batch), list(parameters.values()))
    return dict(zip(parameters, found, strict=True))


@torch.no_grad()
def evaluate(model: nn.Module, examples: Examples, options: TrainingOptions) -> Measured:
    """Return accuracy in percent, over pixels where dense, and the class scores of all examples."""
    model.eval()
    outputs, right, seen = [], 0, 0
    size = max(options.batch_size, 64)
    for inputs, labels in sequential(examples, size=size, device=options.device):
        found = scores(model(**inputs))
        right += int((found.argmax(1) == labels).sum())
        seen += labels.numel()
        outputs.append(found.cpu())
    return Measured(100 * right / seen, torch.cat(outputs))


def scores(output: Any) -> Tensor:
    """Return class scores, which Hugging Face's models wrap as `logits`."""
    result: Tensor = output if isinstance(output, Tensor) else output.logits
    return result


def _optimiser(parameters: Iterable[Tensor], options: TrainingOptions) -> torch.optim.Optimizer:
    if options.optimizer == "sgd":
        return torch.optim.SGD(
            parameters, options.lr, momentum=0.9, weight_decay=options.weight_decay
        )
    return torch.optim.AdamW(parameters, options.lr, weight_decay=options.weight_decay)
