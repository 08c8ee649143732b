# SPDX-License-Identifier: Apache-2.0
"""How a tensor of the permuted run relates to that of the plain run.

Inside a model tokens and features stand on any axes, in heads, in thirds, in a grid. So a tensor is
compared with each permutation of the plain one that its shape allows; the nearest counts. On
random data no wrong one comes near by chance.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations, product

import torch
from torch import Tensor

from equivariance.checking.arrangement import Arrangement
from equivariance.row import permute_rows

__all__ = ["Relation", "distance", "relate"]

Change = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Relation:
    """The nearest relation of a pair of tensors.

    Parameters
    ----------
    name : str
        What is permuted: `tokens`, `features`, both, or `same`; `shape` if the shapes differ.
    error : float
        Largest deviation over the largest entry of the plain tensor, or over `floor`.
    change : callable
        The permutation, as a function of the plain tensor.
    """

    name: str
    error: float
    change: Change


def relate(
    plain: Tensor,
    permuted: Tensor,
    arrangement: Arrangement,
    *,
    heads: int | None,
    tolerance: float,
    floor: float = 0.0,
) -> Relation:
    """Find how a tensor of the permuted run relates to its counterpart.

    Parameters
    ----------
    plain, permuted : Tensor
        Of any shape.
    arrangement : Arrangement
        What was permuted.
    heads : int, optional
        Attention heads, to follow features into them.
    tolerance : float
        The first relation with a smaller error is taken.
    floor : float
        Scale below which entries count as nothing.
    """
    plain, permuted = (_comparable(x.detach()) for x in (plain, permuted))
    if plain.shape != permuted.shape:
        return Relation("shape", float("inf"), _same)
    scale = max(_scale(plain), floor)
    best = Relation("same", float("inf"), _same)
    for name, change in _candidates(plain, arrangement, heads):
        error = _error(change(plain), permuted, scale)
        if error < best.error:
            best = Relation(name, error, change)
        if error <= tolerance:
            break
    return best


def distance(expected: Tensor, found: Tensor) -> float:
    """Return the largest deviation of two tensors of one shape, relative to the largest entry."""
    expected, found = (_comparable(x.detach()) for x in (expected, found))
    return _error(expected, found, _scale(expected))


def _scale(x: Tensor) -> float:
    finite = x[x.isfinite()]  # masks and masked scores are infinite in places
    return float(finite.abs().max()) if finite.numel() else 0.0


def _comparable(x: Tensor) -> Tensor:
    """Return numbers that can be subtracted; floating point and complex ones stay."""
    return x if x.is_floating_point() or x.is_complex() else x.to(torch.float64)


def _error(expected: Tensor, found: Tensor, scale: float) -> float:
    # Entries that are equal count as such where they are infinite, as in masks.
    difference = torch.where(expected == found, 0.0, (expected - found).abs())
    largest = float(difference.max()) if difference.numel() else 0.0
    if largest == 0.0:
        return 0.0
    return largest / scale if scale > 0 else float("inf")


def _same(x: Tensor) -> Tensor:
    return x


def _candidates(
    x: Tensor, arrangement: Arrangement, heads: int | None
) -> Iterator[tuple[str, Change]]:
    rows = [*_row_changes(x, arrangement), _same]
    columns = [*_column_changes(x, arrangement, heads), _same]
    for by_row, by_column in product(rows, columns):
        names = ["tokens"] * (by_row is not _same) + ["features"] * (by_column is not _same)
        yield " and ".join(names) or "same", _chain(by_row, by_column)


def _chain(first: Change, second: Change) -> Change:
    return lambda x: second(first(x))


def _row_changes(x: Tensor, arrangement: Arrangement) -> Iterator[Change]:
    """Give permutations of whatever axes may be tokens."""
    if arrangement.rows is None or x.ndim < 2:
        return
    sizes, rows_BN = arrangement.sizes, arrangement.rows_BN
    batch, tokens, shape = sizes.batch, sizes.tokens, tuple(x.shape)

    def on_axes(axes: tuple[int, ...]) -> Change:
        def change(y: Tensor) -> Tensor:
            for axis in axes:
                y = permute_rows(y.movedim(axis, 1), rows_BN).movedim(1, axis)
            return y

        return change

    if shape[0] == batch:
        axes = [axis for axis in range(1, x.ndim) if shape[axis] == tokens]
        for count in range(len(axes), 0, -1):
            for chosen in combinations(axes, count):
                yield on_axes(chosen)
        for axis in range(1, x.ndim - 1):  # a grid of tokens
            if shape[axis] > 1 < shape[axis + 1] and shape[axis] * shape[axis + 1] == tokens:
                yield _reshaped((*shape[:axis], tokens, *shape[axis + 2 :]), on_axes((axis,)))
    if shape == (tokens, tokens) and arrangement.rows.ndim == 1:
        rows = arrangement.rows
        yield lambda y: y[rows][:, rows]
    if shape[:2] == (tokens, batch):
        yield lambda y: permute_rows(y.transpose(0, 1), rows_BN).transpose(0, 1)
    if shape[0] == batch * tokens:
        yield _reshaped((batch, tokens, *shape[1:]), on_axes((1,)))
    elif shape[0] % batch == 0 and tokens in shape[1:]:  # heads folded into the batch
        axes = [axis + 1 for axis in range(1, x.ndim) if shape[axis] == tokens]
        unfolded = (batch, shape[0] // batch, *shape[1:])
        for count in range(len(axes), 0, -1):
            for chosen in combinations(axes, count):
                yield _reshaped(unfolded, on_axes(chosen))


def _reshaped(shape: tuple[int, ...], change: Change) -> Change:
    return lambda y: change(y.reshape(shape)).reshape(y.shape)


def _column_changes(x: Tensor, arrangement: Arrangement, heads: int | None) -> Iterator[Change]:
    """Give permutations of whatever axes may be features, of the stream or of heads."""
    order = arrangement.columns
    if order is None or x.ndim < 1:
        return
    dim, shape = order.numel(), tuple(x.shape)

    def select(axis: int, index: Tensor) -> Change:
        return lambda y: y.index_select(axis, index)

    for axis in reversed(range(x.ndim)):
        if shape[axis] in (dim, 2 * dim, 3 * dim):
            offsets = torch.arange(shape[axis] // dim).unsqueeze(1) * dim
            yield select(axis, (order + offsets).flatten())
    if not heads or dim % heads or x.ndim < 3:
        return
    size, batch = dim // heads, arrangement.sizes.batch
    for axis in range(x.ndim - 1):
        if shape[axis] == heads and shape[-1] == size:
            merged = (*(n for i, n in enumerate(shape[:-1]) if i != axis), dim)
            yield _in_heads(axis, merged, order)
        if shape[axis] == heads and arrangement.head_order is not None:
            yield select(axis, arrangement.head_order)
    if shape[0] == batch * heads and arrangement.head_order is not None:
        unfolded = (batch, heads, *shape[1:])
        yield _reshaped(unfolded, select(1, arrangement.head_order))


def _in_heads(axis: int, merged: tuple[int, ...], order: Tensor) -> Change:
    def change(y: Tensor) -> Tensor:
        apart = y.movedim(axis, -2)
        return apart.reshape(merged)[..., order].reshape(apart.shape).movedim(-2, axis)

    return change
