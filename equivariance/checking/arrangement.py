# SPDX-License-Identifier: Apache-2.0
"""How the inputs of a run are arranged: tokens, features and masks permuted along with each other.

Shape suffixes: B batch, N tokens, D features.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from equivariance.column import permute_columns
from equivariance.order import invert
from equivariance.permutation import RowPermutation

__all__ = ["Arrangement", "Sizes", "map_tensors"]

_OF_PAIRS = ("attn_mask", "src_mask", "tgt_mask", "pair", "bias")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Sizes of the stream that is permuted; `dim` is 0 where token ids come in, not features."""

    batch: int
    tokens: int
    dim: int
    batch_first: bool = True

    @classmethod
    def of(cls, x: Tensor, *, batch_first: bool = True) -> "Sizes":
        """Take them from a tensor [B, N] or [B, N, D], or with the first two axes swapped."""
        if x.ndim not in (2, 3):
            raise ValueError(f"the stream is [B, N, D], or token ids [B, N]; got {list(x.shape)}")
        batch, tokens = x.shape[:2] if batch_first else (x.shape[1], x.shape[0])
        dim = x.shape[2] if x.ndim == 3 else 0
        return cls(batch=batch, tokens=tokens, dim=dim, batch_first=batch_first)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """The permutations of one run.

    Parameters
    ----------
    sizes : Sizes
        Of the stream.
    rows : Tensor, optional
        [N] or [B, N].
    columns : Tensor, optional
        [D].
    head_order : Tensor, optional
        [heads]: the order into which `columns` brings whole attention heads, if it does.
    heads : int, optional
        Attention heads, to tell masks of heads from those of samples.
    keep : collection of str
        Names of inputs that are not permuted along.
    """

    sizes: Sizes
    rows: Tensor | None = None
    columns: Tensor | None = None
    head_order: Tensor | None = None
    heads: int | None = None
    keep: Collection[str] = ()

    @property
    def rows_BN(self) -> Tensor:
        """The row order of each sample."""
        size = self.sizes
        rows = torch.arange(size.tokens) if self.rows is None else self.rows
        return rows.expand(size.batch, size.tokens)

    def stream(self, x: Tensor) -> Tensor:
        """Permute the stream itself: tokens, and features if it has them."""
        x = x if self.rows is None else self.tokens(x)
        if self.columns is not None and x.ndim == 3:
            x = permute_columns(x, self.columns)
        return x

    def tokens(self, x: Tensor) -> Tensor:
        """Permute the tokens of x [B, N, ...], or [N, B, ...] as sizes say."""
        rows = RowPermutation(self.rows_BN)
        if self.sizes.batch_first:
            return rows.apply(x)
        return rows.apply(x.transpose(0, 1)).transpose(0, 1)

    def undo(self, x: Tensor) -> Tensor:
        """Undo `stream`."""
        return self.inverse().stream(x)

    def inverse(self) -> "Arrangement":
        """Return the arrangement that undoes this one."""
        return Arrangement(
            sizes=self.sizes,
            rows=None if self.rows is None else invert(self.rows),
            columns=None if self.columns is None else invert(self.columns),
            head_order=None if self.head_order is None else invert(self.head_order),
            heads=self.heads,
            keep=self.keep,
        )

    def whole(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Expand inputs [1, N, ...], and masks and biases [1, ..., N], to the batch.

        So each sample can have its own order.
        """
        batch, tokens = self.sizes.batch, self.sizes.tokens

        def expand(x: Tensor, *, by_token: bool) -> Tensor:
            single = x.ndim >= 2 and x.shape[0] == 1
            along = x.shape[-1] if by_token and x.ndim > 2 else x.shape[1] if single else 0
            if single and along == tokens and self.sizes.batch_first:
                return x.expand(batch, *x.shape[1:])
            return x

        return {
            name: map_tensors(value, partial(expand, by_token=_is_by_token(name)))
            for name, value in inputs.items()
        }

    def along(self, name: str, x: Tensor, *, feature: bool = False) -> Tensor:
        """Permute a further input along with the stream: positions, masks, further features.

        Parameters
        ----------
        name : str
            Of the input; one that has `mask` or `bias` in it is about tokens, never features.
        x : Tensor
            [B, N, ...] by token; [N, N], [heads, N, N], [B, N, N], [B, heads or 1, N or 1, N] by
            pairs of tokens; by heads if it differs between them. Anything else stays, and so do
            the former two under an order for each sample, which they cannot follow.
        feature : bool
            Take [..., D] for features of the stream.

        Raises
        ------
        ValueError
            If a mask could be [B, N] as well as [N, N], and its name does not tell.
        """
        if name in self.keep:
            return x
        by_token = _is_by_token(name)
        if self.rows is not None:
            x = self._by_pairs(x) if by_token and not self._padding(name, x) else self._by_rows(x)
        if self.head_order is not None and by_token:
            x = self._by_heads(x, self.head_order)
        if self.columns is not None and feature and not by_token and x.is_floating_point():
            dim = self.columns.numel()
            x = permute_columns(x, self.columns) if x.ndim == 3 and x.shape[-1] == dim else x
        return x

    def _padding(self, name: str, x: Tensor) -> bool:
        """Whether a mask is [B, N] and not [N, N]; the name decides where both are the same."""
        size = self.sizes
        square = x.ndim == 2 and x.shape[0] == x.shape[1] == size.tokens
        if not square or size.batch != size.tokens:
            return x.ndim == 2 and not square
        named = "padding" in name or name == "attention_mask"
        if not named and not any(word in name for word in _OF_PAIRS):
            raise ValueError(
                f"{name} {list(x.shape)}: by samples and tokens, or by pairs of tokens? With as "
                f"many samples as tokens it cannot be told: check with another number of samples"
            )
        return named

    def _by_rows(self, x: Tensor) -> Tensor:
        size = self.sizes
        if x.ndim >= 2 and tuple(x.shape[:2]) == (size.batch, size.tokens):
            return RowPermutation(self.rows_BN).apply(x)
        if not size.batch_first and x.ndim >= 2 and x.shape[:2] == (size.tokens, size.batch):
            return RowPermutation(self.rows_BN).apply(x.transpose(0, 1)).transpose(0, 1)
        return x

    @property
    def _shared(self) -> bool:
        return bool((self.rows_BN == self.rows_BN[0]).all())

    def _by_pairs(self, x: Tensor) -> Tensor:
        batch, tokens = self.sizes.batch, self.sizes.tokens
        if x.shape[-1] != tokens:
            return x
        if x.ndim == 2:
            if x.shape[0] != tokens or not self._shared:
                return x  # one mask cannot follow an order for each sample: seen as not permuted
            return RowPermutation(self.rows_BN[0]).apply_to_pairs(x)
        by_head = x.ndim == 3 and x.shape[0] == self.heads != batch
        if by_head or x.shape[0] % batch:
            if not self._shared:
                return x
            parts = x.unsqueeze(0)
            rows = RowPermutation(self.rows_BN[:1])
        else:  # as well PyTorch's [B * heads, N, N]
            parts = x.reshape(batch, -1, *x.shape[1:])
            rows = RowPermutation(self.rows_BN)
        if x.shape[-2] == tokens:
            parts = rows.apply_to_pairs(parts)
        elif x.shape[-2] == 1:
            parts = rows.apply(parts.movedim(-1, 1)).movedim(1, -1)
        return parts.reshape(x.shape)

    def _by_heads(self, x: Tensor, order: Tensor) -> Tensor:
        heads, batch = order.numel(), self.sizes.batch
        if x.ndim == 4 and x.shape[1] == heads:
            return x[:, order]
        if x.ndim == 3 and x.shape[0] == heads != batch:
            return x[order]
        if x.ndim == 3 and x.shape[0] == batch * heads:  # PyTorch's [B * heads, N, N]
            return x.reshape(batch, heads, *x.shape[1:])[:, order].reshape(x.shape)
        return x


def _is_by_token(name: str) -> bool:
    return any(word in name for word in ("mask", "bias"))


def map_tensors(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Apply a function to a tensor, or to those in a list or tuple; return the rest as it is."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return type(value)(map_tensors(item, change) for item in value)
    return value
