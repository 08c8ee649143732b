# SPDX-License-Identifier: Apache-2.0
"""Permutations as values: checked once, then applied, inverted, composed, compared, stored.

They hold an index tensor and nothing else; a dense matrix is never made. Products follow the
matrices that they stand for: rows act from the left, (P Q) Z = P (Q Z), columns from the right,
Z (P Q) = (Z P) Q.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from equivariance.column import (
    Inner,
    check_headwise,
    log2_group_size,
    permute_columns,
    sample_column_order,
)
from equivariance.keys import Secret
from equivariance.order import check_permutation, compose, invert
from equivariance.row import permute_rows, with_prefix
from equivariance.stream import random_permutations

__all__ = ["ColumnPermutation", "RowPermutation"]


@dataclass(frozen=True, slots=True, eq=False)
class RowPermutation:
    """A permutation of tokens, P_R: one for all samples, or one for each.

    Parameters
    ----------
    order : Tensor
        [N] or [B, N], int64: token `i` of the result is token `order[..., i]` of the input.

    Raises
    ------
    ValueError
        If it is no permutation.
    """

    order: Tensor

    def __post_init__(self) -> None:
        check_permutation(self.order)

    @classmethod
    def identity(cls, tokens: int) -> Self:
        """Return the permutation that changes nothing."""
        return cls(torch.arange(tokens))

    @classmethod
    def sample(
        cls, secret: Secret, *, tokens: int, batch: int | None = None, prefix: int = 0
    ) -> Self:
        """Draw uniformly among all permutations.

        Parameters
        ----------
        secret : Secret
            Determines the result.
        tokens : int
            Of a sample, >= 0, with those that stay.
        batch : int, optional
            Draw one permutation for each of so many samples; by default one for all.
        prefix : int
            Leading tokens (CLS, registers) that stay where they are, 0 ... tokens.
        """
        if not 0 <= prefix <= tokens:
            raise ValueError(f"prefix {prefix}: allowed are 0 ... {tokens}, the number of tokens")
        free = tokens - prefix
        key = secret.derive("row-permutation", free)
        orders = random_permutations(key, count=1 if batch is None else batch, length=free)
        return cls(with_prefix(orders[0] if batch is None else orders, prefix))

    @property
    def tokens(self) -> int:
        """Number of tokens, N."""
        return self.order.shape[-1]

    @property
    def batch(self) -> int | None:
        """Number of samples with a permutation of their own, or None if one serves all."""
        return self.order.shape[0] if self.order.ndim == 2 else None

    @property
    def log2_group_size(self) -> float:
        """log2 of the number of permutations of one sample, N!."""
        return math.lgamma(self.tokens + 1) / math.log(2)

    def apply(self, x_BND: Tensor) -> Tensor:
        """Return P_R x for x [B, N, ...]; see `permute_rows`."""
        return permute_rows(x_BND, self.order)

    def apply_to_pairs(self, x: Tensor) -> Tensor:
        """Permute what belongs to pairs of tokens, an attention mask or score: P_R x P_R^-1.

        Parameters
        ----------
        x : Tensor
            [B, ..., N, N], or [N, N] for all samples. The latter, under a permutation for each
            sample, becomes [B, N, N].
        """
        if x.ndim == 2:
            shared = self.order.ndim == 1
            x = x.expand(1 if shared else self.order.shape[0], *x.shape)
            return self.apply_to_pairs(x)[0] if shared else self.apply_to_pairs(x)
        queries = permute_rows(x.movedim(-2, 1), self.order).movedim(1, -2)
        return permute_rows(queries.movedim(-1, 1), self.order).movedim(1, -1)

    def inverse(self) -> "RowPermutation":
        """Return the permutation that undoes this one."""
        return RowPermutation(invert(self.order))

    def __matmul__(self, other: "RowPermutation") -> "RowPermutation":
        return RowPermutation(compose(other.order, self.order))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowPermutation) and _same(self.order, other.order)

    def to(self, device: torch.device | str) -> "RowPermutation":
        """Return it on another device."""
        return RowPermutation(self.order.to(device))

    def state_dict(self) -> dict[str, Tensor]:
        """Return what `from_state_dict` takes, for safetensors or `torch.save`."""
        return {"order": self.order}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Tensor]) -> Self:
        """Restore; ValueError if keys are missing or unknown or it is no permutation."""
        return cls(*_values(state, "order"))


@dataclass(frozen=True, slots=True, eq=False)
class ColumnPermutation:
    """A permutation of features, P_C, together with the group it is admissible in.

    Parameters
    ----------
    order : Tensor
        [D], int64: feature `i` of the result is feature `order[i]` of the input.
    heads : int, optional
        Attention heads that it must keep together, so that it can act within attention too. Without
        it any order is admissible, and conjugation leaves the outputs of query, key and value and
        the input of the projection alone: the residual stream's group, D!.

    Raises
    ------
    ValueError
        If it is no permutation, or mixes heads.
    """

    order: Tensor
    heads: int | None = None

    def __post_init__(self) -> None:
        if self.order.ndim != 1:
            raise ValueError(f"a column order is [D]; got {list(self.order.shape)}")
        if self.heads is None:
            check_permutation(self.order)
        else:
            check_headwise(self.order, self.heads)

    @classmethod
    def identity(cls, dim: int, *, heads: int | None = None) -> Self:
        """Return the permutation that changes nothing."""
        return cls(torch.arange(dim), heads)

    @classmethod
    def sample(cls, secret: Secret, *, dim: int, heads: int | None = None) -> Self:
        """Draw uniformly from the group; the same as `sample_column_order` with its `heads`."""
        order = sample_column_order(secret, dim=dim, heads=1 if heads is None else heads)
        return cls(order, heads)

    @property
    def dim(self) -> int:
        """Number of features, D."""
        return self.order.numel()

    @property
    def inner(self) -> Inner:
        """What conjugation does within attention: `headwise`, or `none` without heads."""
        return "none" if self.heads is None else "headwise"

    @property
    def log2_group_size(self) -> float:
        """log2 of the size of its group: (D/h)!^h h! for h heads, D! without."""
        return log2_group_size(self.dim, 1 if self.heads is None else self.heads)

    def apply(self, x: Tensor) -> Tensor:
        """Return x P_C for x [..., D]; see `permute_columns`."""
        return permute_columns(x, self.order)

    def inverse(self) -> "ColumnPermutation":
        """Return the permutation that undoes this one."""
        return ColumnPermutation(invert(self.order), self.heads)

    def __matmul__(self, other: "ColumnPermutation") -> "ColumnPermutation":
        if self.heads != other.heads:
            raise ValueError(
                f"permutations for {self.heads} and {other.heads} heads are of different groups"
            )
        return ColumnPermutation(compose(self.order, other.order), self.heads)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ColumnPermutation)
            and self.heads == other.heads
            and _same(self.order, other.order)
        )

    def to(self, device: torch.device | str) -> "ColumnPermutation":
        """Return it on another device."""
        return ColumnPermutation(self.order.to(device), self.heads)

    def state_dict(self) -> dict[str, Tensor]:
        """Return what `from_state_dict` takes; `heads` is 0 for the residual stream's group."""
        return {"order": self.order, "heads": torch.tensor(self.heads or 0)}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Tensor]) -> Self:
        """Restore; ValueError if keys are missing or unknown or it is not admissible."""
        order, heads = _values(state, "order", "heads")
        return cls(order, int(heads) or None)


def _same(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and torch.equal(a.cpu(), b.cpu())


def _values(state: Mapping[str, Tensor], *names: str) -> list[Tensor]:
    if set(state) != set(names):
        raise ValueError(
            f"a permutation's state has the keys {', '.join(names)}; "
            f"got {', '.join(state) or 'none'}"
        )
    return [state[name] for name in names]
