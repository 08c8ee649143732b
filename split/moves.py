# SPDX-License-Identifier: Apache-2.0
"""The three moves of a client in one training step: smash, finish, absorb.

Each is a function of the client's modules, one :class:`Batch` and what came from the server.
Nothing is kept between them: absorb runs the edge again, and as all randomness of a batch is
fixed in it, the second run is bit-exact.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from split.parts import Edge, Tail
from split.seeds import seeded

TensorMap = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Batch:
    """One client's batch of one step, with everything random about it decided.

    Parameters
    ----------
    images : Tensor
        ``[B, 3, H, W]`` in [-1, 1], augmented, with pixel defences applied.
    labels : Tensor
        ``[B, K]`` in {0, 1}.
    seal : callable
        What happens to the edge's tokens ``[B, N, D]`` before they are sent: defences on the
        embedding, then the permutations. Differentiable, and the same at each call.
    open : callable
        What undoes the permutations on hidden, ``[B, N, D]`` or pooled ``[B, D]``.
    seed : int
        Seed of the random layers of edge and tail (drop-path).
    """

    images: Tensor
    labels: Tensor
    seal: TensorMap
    open: TensorMap
    seed: int


@dataclass(frozen=True)
class Finished:
    """What :func:`finish` found: loss (mean over the batch), logits, and d loss / d hidden."""

    loss: float
    logits_BK: Tensor
    hidden_gradient: Tensor


def sealed_tokens(edge: Edge, batch: Batch) -> Tensor:
    """The smashed data ``[B, N, D]`` of a batch, with its graph."""
    with seeded(batch.seed):
        return batch.seal(edge(batch.images))


@torch.no_grad()
def smash(edge: Edge, batch: Batch) -> Tensor:
    """Move 1: what the client sends, ``[B, N, D]``."""
    return sealed_tokens(edge, batch)


def finish(tail: Tail, batch: Batch, hidden: Tensor) -> Finished:
    """Move 2: loss and gradient at the tail. Adds to the gradients of the tail's parameters.

    ``hidden`` is ``[B, N, D]``, or ``[B, D]`` if the trunk has pooled. The loss is the binary
    cross entropy with logits, averaged over samples and outputs.
    """
    received = hidden.detach().requires_grad_()
    with seeded(batch.seed):
        logits_BK = tail(batch.open(received))
    loss = functional.binary_cross_entropy_with_logits(logits_BK, batch.labels)
    loss.backward()  # type: ignore[no-untyped-call]
    assert received.grad is not None
    return Finished(loss.item(), logits_BK.detach(), received.grad)


def absorb(edge: Edge, batch: Batch, smashed_gradient_BND: Tensor) -> None:
    """Move 3: run the edge again and add the gradients of its parameters."""
    if any(parameter.requires_grad for parameter in edge.parameters()):
        sealed_tokens(edge, batch).backward(smashed_gradient_BND)  # type: ignore[no-untyped-call]


@torch.no_grad()
def predict(tail: nn.Module, batch: Batch, hidden: Tensor) -> Tensor:
    """Logits ``[B, K]`` in evaluation."""
    logits: Tensor = tail(batch.open(hidden))
    return logits
