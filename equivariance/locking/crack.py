# SPDX-License-Identifier: Apache-2.0
"""The attack on locking: find the key by comparison with a public model.

Conjugation moves columns and changes no value, so the columns of a locked model are recognised in
the model that it was made from, or in a fine-tuned or noisy copy of it (ArrowMatch, USENIX Security
2025, does so with permuted weights). Two stages:

1. Parameters with one permuted axis (norms, biases, LayerScale, MLP weights) are compared as they
   are: a linear assignment problem over the admissible group, solved exactly.
2. Parameters with two (attention weights under `headwise`) are compared under the permutation
   found so far, which gives further scores; repeated until nothing changes.

Every parameter is scaled to variance one, so that for independent Gaussian noise, proportional to
each parameter's spread, the best score is the greatest likelihood. The permutation is found, not
the 256-bit secret that it was drawn from.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from equivariance.locking.architectures import Stack, block_names
from equivariance.locking.errors import LockError
from equivariance.locking.features import column_axes, permuted_axes, standardised
from equivariance.locking.matching import best_headwise, nearest

__all__ = ["Crack", "crack", "share_recovered"]

_MAX_ROUNDS = 10


@dataclass(frozen=True, kw_only=True)
class Crack:
    """What the attack found.

    Parameters
    ----------
    order : Tensor
        Best estimate of the column permutation, [dim], int64.
    nearest : Tensor
        What nearest-column matching alone says, [dim]; perhaps no permutation.
    agreement : float
        Share of columns on which estimates from two disjoint halves of the entries agree: near 1
        if the reference is related to the locked model, near 1 / dim if not. Needs no key. NaN if
        there are no entries to compare column by column.
    residual : float
        Distance of the locked blocks from the reference's under `order`, relative to the locked
        ones, each parameter scaled to variance one: 0 for an exact copy, about 1.4 for an
        unrelated model.
    compared : int
        Parameters that both models have.
    """

    order: Tensor
    nearest: Tensor
    agreement: float
    residual: float
    compared: int

    @property
    def related(self) -> bool:
        """Whether the halves agree on more columns than chance explains.

        Two unrelated estimates agree on one column on average, whatever their number; on eight by
        chance once in 100 000 times.
        """
        return self.agreement * self.order.numel() >= min(8, self.order.numel())


def share_recovered(found: Tensor, order: Tensor) -> float:
    """Return the share of the key's columns that are found, 0 ... 1; both are [dim]."""
    return float((found == order).double().mean())


def crack(locked: Mapping[str, Tensor], reference: Mapping[str, Tensor], stack: Stack) -> Crack:
    """Find the column permutation of a locked model from a related plain one.

    Parameters
    ----------
    locked, reference : mapping of str to Tensor
        State dicts, on the CPU. Names may differ before the index of the block; parameters outside
        the blocks are ignored.
    stack : Stack
        What the locked file says about itself.

    Raises
    ------
    LockError
        If the models have no parameter in common, or common ones differ in shape or have entries
        that are not finite.
    """
    pairs = _Pairs(locked, reference, stack)
    halves = torch.zeros(2, stack.dim, stack.dim)
    for index, (one, other) in enumerate(pairs.columns()):
        for half in (0, 1):
            part = slice((index + half) % 2, None, 2)
            halves[half] += _scores(one[:, part], other[:, part])
    heads = stack.heads if stack.inner == "headwise" else 1
    estimates = [best_headwise(scores, heads) for scores in halves]
    linear = halves.sum(0)
    order = _refined(best_headwise(linear, heads), linear, pairs, heads)
    return Crack(
        order=order,
        nearest=nearest(linear),
        agreement=share_recovered(*estimates) if bool(halves.any(2).any(1).all()) else math.nan,
        residual=pairs.residual(order),
        compared=len(pairs.names),
    )


def _refined(order: Tensor, linear: Tensor, pairs: "_Pairs", heads: int) -> Tensor:
    for _ in range(_MAX_ROUNDS):
        scores = linear.clone()
        for one, other in pairs.squares():
            scores += _scores(one.flatten(1), other[:, order].flatten(1))
            one, other = one.transpose(0, 1), other.transpose(0, 1)
            scores += _scores(one.flatten(1), other[:, order].flatten(1))
        better = best_headwise(scores, heads)
        if torch.equal(better, order):
            break
        order = better
    return order


def _scores(one_DK: Tensor, other_DK: Tensor) -> Tensor:
    """Score pairs of columns: minus half their squared distance, but for a term of `one` alone."""
    return one_DK @ other_DK.T - other_DK.square().sum(1) / 2


class _Pairs:
    """The parameters that both models have, scaled alike, one pair in memory at a time."""

    def __init__(
        self, locked: Mapping[str, Tensor], reference: Mapping[str, Tensor], stack: Stack
    ) -> None:
        inside = {short: name for name, short in block_names(reference, stack.architecture).items()}
        shorts = block_names(locked, stack.architecture)
        self.names = {name: inside[short] for name, short in shorts.items() if short in inside}
        self._locked, self._reference, self._stack = locked, reference, stack
        stack.check_shapes(
            {name: tuple(locked[name].shape) for name in self.names}, torch.arange(stack.dim)
        )
        different = [
            f"  {name} {list(locked[name].shape)}, {list(reference[other].shape)} in the reference"
            for name, other in self.names.items()
            if locked[name].shape != reference[other].shape
        ]
        if different or not self.names:
            problem = "\n".join(["of different shape:", *different]) if different else "none"
            raise LockError(f"parameters that the models have in common: {problem}")
        wild = [
            f"  {label} {name}"
            for pair in self.names.items()
            for label, name, state in zip(
                ("locked", "reference"), pair, (locked, reference), strict=True
            )
            if not bool(state[name].isfinite().all())
        ]
        if wild:
            raise LockError(
                "\n".join(["these parameters have entries that are not finite:", *wild])
            )

    def columns(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield parameters with one permuted axis, as [dim, other entries]."""
        for one, other, count in self._all():
            if count == 1:
                yield one.flatten(1), other.flatten(1)

    def squares(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield parameters with two permuted axes, as [dim, dim, other entries]."""
        for one, other, count in self._all():
            if count == 2:
                yield one, other

    def residual(self, order: Tensor) -> float:
        """Relative distance of the locked parameters from the reference's under `order`."""
        distance = norm = 0.0
        for one, other, count in self._all():
            for axis in range(count):
                other = other.index_select(axis, order)
            distance += float((one - other).square().sum())
            norm += float(one.square().sum())
        return (distance / norm) ** 0.5 if norm else 0.0

    def _all(self) -> Iterator[tuple[Tensor, Tensor, int]]:
        for name, other in self.names.items():
            locked = self._locked[name]
            axes = permuted_axes(name, locked, self._stack)
            one = column_axes(standardised(locked), axes, self._stack.dim)
            two = column_axes(standardised(self._reference[other]), axes, self._stack.dim)
            yield one, two, len(axes)
