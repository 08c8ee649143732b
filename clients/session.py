# SPDX-License-Identifier: Apache-2.0
"""A client at work: its modules and optimisers brought to life from its state.

The same code serves both transports: the ClientApp makes a session for each message, or keeps
one for a whole round.
"""

import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from torch import Tensor, nn
from torch.nn import functional

from clients.owner import Moment, Owner
from clients.state import PARTS, ClientState
from config import RunConfig
from split import (
    Batch,
    Edge,
    Finished,
    ModelSpec,
    OptimiserSpec,
    Tail,
    absorb,
    build_split,
    empty_split,
    finish,
    predict,
    smash,
)
from split.optimise import build_optimiser, export_moments, load_moments, step_at

Weights = dict[str, Tensor]
"""Named weights of a client, ``edge/...`` and ``tail/...``."""


@dataclass
class Totals:
    """Counts of an evaluation, per attribute: enough for accuracy and balanced accuracy.

    Parameters
    ----------
    images : int
    loss : float
        Sum over images of the mean loss over attributes.
    positives, true_positives, true_negatives : list of int
        One entry per attribute; a logit above 0 is a positive prediction.
    """

    images: int = 0
    loss: float = 0.0
    positives: list[int] = field(default_factory=list)
    true_positives: list[int] = field(default_factory=list)
    true_negatives: list[int] = field(default_factory=list)

    def add(self, logits_BK: Tensor, labels_BK: Tensor) -> None:
        """Count one batch."""
        truth, guess = labels_BK > 0.5, logits_BK > 0
        loss = functional.binary_cross_entropy_with_logits(logits_BK, labels_BK)
        self.loss += loss.item() * len(labels_BK)
        self.images += len(labels_BK)
        self.positives = _sum(self.positives, truth)
        self.true_positives = _sum(self.true_positives, truth & guess)
        self.true_negatives = _sum(self.true_negatives, ~truth & ~guess)


def _sum(counts: list[int], flags_BK: Tensor) -> list[int]:
    now = flags_BK.sum(dim=0).tolist()
    return [a + b for a, b in zip(counts, now, strict=True)] if counts else now


class Session:
    """One client, ready for its moves.

    Parameters
    ----------
    owner : Owner
    state : ClientState
        Taken over; :meth:`state` gives it back.
    """

    def __init__(self, owner: Owner, state: ClientState) -> None:
        self.owner, self._state = owner, state
        config = owner.config
        self.edge, self.tail = _borrow_shells(self, ModelSpec.of(config), config.cut)
        if not state.tensors:
            state.tensors = _first_tensors(ModelSpec.of(config), config.cut)
        self._modules: dict[str, nn.Module] = {"edge": self.edge, "tail": self.tail}
        self._optimisers = {}
        for part, module in self._modules.items():
            module.load_state_dict(state.tensors[part])
            module.train().requires_grad_(config.client_weights != "frozen")
            module.zero_grad(set_to_none=True)
            optimiser = build_optimiser(client_optimiser(config), module.parameters())
            load_moments(optimiser, module, state.tensors[f"{part}-moments"])
            self._optimisers[part] = optimiser

    # -- training -------------------------------------------------------------------------

    def begin_round(self, round: int) -> None:
        """Mark a round as begun."""
        self._state.begun = round

    def smash(self, round: int, step: int, steps: int) -> Tensor:
        """Move 1: smashed data ``[B, N, D]``."""
        return smash(self.edge, self._training_batch(round, step, steps))

    def finish(
        self, round: int, step: int, steps: int, hidden: Tensor, progress: float
    ) -> Finished:
        """Move 2: loss and gradient of hidden; the tail's optimiser steps."""
        result = finish(self.tail, self._training_batch(round, step, steps), hidden)
        self._step("tail", progress)
        return result

    def absorb(
        self, round: int, step: int, steps: int, gradient: Tensor | None, progress: float
    ) -> None:
        """Move 3: the edge's optimiser steps. A frozen edge gets no gradient (None)."""
        if gradient is not None:
            absorb(self.edge, self._training_batch(round, step, steps), gradient)
            self._step("edge", progress)

    def end_round(self, round: int) -> None:
        """Mark a round as completed."""
        self._state.finished = round

    def _step(self, part: str, progress: float) -> None:
        if self.owner.config.client_weights != "frozen":
            step_at(self._optimisers[part], client_optimiser(self.owner.config), progress)

    def _training_batch(self, round: int, step: int, steps: int) -> Batch:
        return _training_batch(self.owner, Moment(purpose="train", round=round, step=step), steps)

    # -- evaluation -----------------------------------------------------------------------

    def evaluation_smash(self, split: str, round: int, index: int) -> Tensor:
        """Smashed data of evaluation batch ``index``."""
        batch = self.owner.evaluation_batch(Moment(purpose=split, round=round, step=index))
        return smash(self.edge.eval(), batch)

    def evaluation_finish(
        self, split: str, round: int, index: int, hidden: Tensor, totals: Totals
    ) -> None:
        """Count evaluation batch ``index`` into ``totals``."""
        batch = self.owner.evaluation_batch(Moment(purpose=split, round=round, step=index))
        totals.add(predict(self.tail.eval(), batch, hidden), batch.labels)

    # -- state ----------------------------------------------------------------------------

    def weights(self) -> Weights:
        """Weights of edge and tail, as they are averaged over clients."""
        return {
            f"{part}/{name}": tensor.detach().clone()
            for part, module in self._modules.items()
            for name, tensor in module.state_dict().items()
        }

    def replace_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Take averaged weights; moments stay."""
        for part, module in self._modules.items():
            prefix = f"{part}/"
            module.load_state_dict(
                {k.removeprefix(prefix): t for k, t in weights.items() if k.startswith(prefix)}
            )

    def state(self) -> ClientState:
        """The client's state now."""
        for part, module in self._modules.items():
            self._state.tensors[part] = {
                name: tensor.detach().clone() for name, tensor in module.state_dict().items()
            }
            self._state.tensors[f"{part}-moments"] = export_moments(self._optimisers[part], module)
        return self._state


def client_optimiser(config: RunConfig) -> OptimiserSpec:
    """The optimiser of edge and tail."""
    return OptimiserSpec(
        kind=config.optimizer,
        lr_start=config.lr_client,
        lr_end=config.lr_client_end,
        momentum=config.momentum,
        weight_decay=config.weight_decay,
    )


@lru_cache(maxsize=8)
def _training_batch(owner: Owner, moment: Moment, steps: int) -> Batch:
    """A memo within a process: a step's batch is asked for three times. Never needed."""
    return owner.training_batch(moment, steps)


_IDLE_SHELLS: dict[tuple[ModelSpec, int], list[tuple[Edge, Tail]]] = {}


def _borrow_shells(session: Session, spec: ModelSpec, cut: int) -> tuple[Edge, Tail]:
    """Modules for a session, whose weights it replaces; they come back when it is gone.

    Building them would cost most of a small model's message.
    """
    idle = _IDLE_SHELLS.setdefault((spec, cut), [])
    if idle:
        shells = idle.pop()
    else:
        parts = empty_split(spec, cut)
        shells = (parts.edge.to_empty(device="cpu"), parts.tail.to_empty(device="cpu"))
    weakref.finalize(session, idle.append, shells)
    return shells


@lru_cache(maxsize=2)
def _first_weights(spec: ModelSpec, cut: int) -> tuple[Weights, Weights]:
    parts = build_split(spec, cut)
    return parts.edge.state_dict(), parts.tail.state_dict()


def _first_tensors(spec: ModelSpec, cut: int) -> dict[str, Weights]:
    edge, tail = _first_weights(spec, cut)
    return dict(zip(PARTS, (dict(edge), dict(tail), {}, {}), strict=True))
