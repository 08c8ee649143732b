# SPDX-License-Identifier: Apache-2.0
"""Column permutations: the order of features, with attention heads kept together.

A stack of blocks obeys T_(C)(Z P_C) = T(Z) P_C once its weights are conjugated (paper, column
permutation; see `conjugation`). When P_C also acts inside attention it must map every head onto
one head, else the heads' scores mix. The admissible group permutes freely inside each head and
permutes whole heads, (d!)^h h! elements for h heads of d features; the paper counts d! h!, that
is the same permutation in every head.
"""

import math
from typing import Literal

import torch
from torch import Tensor

from equivariance.keys import Secret
from equivariance.order import check_permutation, invert, reorder
from equivariance.stream import random_permutations

__all__ = [
    "Inner",
    "check_headwise",
    "log2_group_size",
    "permute_columns",
    "sample_column_order",
    "unpermute_columns",
]

Inner = Literal["headwise", "none"]
"""What a column permutation does within attention: see `conjugate_state`."""


def sample_column_order(secret: Secret, *, dim: int, heads: int) -> Tensor:
    """Draw a column permutation, uniform among those that keep heads together.

    Parameters
    ----------
    secret : Secret
        The model owner's; determines the result.
    dim, heads : int
        Features of the residual stream and attention heads. `heads=1` draws among all `dim!`,
        which `inner="none"` of conjugation admits.

    Returns
    -------
    Tensor
        [dim], int64.

    Raises
    ------
    ValueError
        If `heads` does not divide `dim`.
    """
    size = _head_size(dim, heads)
    key = secret.derive("columns", dim, heads)
    within = random_permutations(key.derive("within"), count=heads, length=size)
    across = random_permutations(key.derive("across"), count=1, length=heads)
    return (across.reshape(heads, 1) * size + within).flatten()


def permute_columns(x: Tensor, order: Tensor) -> Tensor:
    """Permute the features: `out[..., i] = x[..., order[i]]`, the paper's Z P_C.

    Differentiable; the gradient is `unpermute_columns` of the incoming one, exactly.

    Parameters
    ----------
    x : Tensor
        [..., D].
    order : Tensor
        A permutation [D], int64, on the device of `x`.

    Returns
    -------
    Tensor
        New tensor shaped like `x`.

    Raises
    ------
    ValueError
        If `order` is not int64 or not [D].
    """
    if order.dtype != torch.int64 or order.shape != x.shape[-1:]:
        raise ValueError(
            f"a column order for x {list(x.shape)} is int64 {list(x.shape[-1:])}; "
            f"got {order.dtype} {list(order.shape)}"
        )
    # Selecting columns of a matrix is several times faster than along the last of three axes.
    return reorder(x.reshape(-1, order.numel()), order, 1).reshape(x.shape)


def unpermute_columns(x: Tensor, order: Tensor) -> Tensor:
    """Undo `permute_columns`; same parameters, result and errors."""
    return permute_columns(x, invert(order))


def check_headwise(order: Tensor, heads: int) -> None:
    """Check that a column permutation maps every head onto one head.

    Parameters
    ----------
    order : Tensor
        [D], int64.
    heads : int
        Attention heads.

    Raises
    ------
    ValueError
        If it is no permutation, `heads` does not divide D, or it mixes heads.
    """
    check_permutation(order)
    size = _head_size(order.numel(), heads)
    source = (order // size).reshape(heads, size)
    mixed = (source != source[:, :1]).any(dim=1)
    if bool(mixed.any()):
        raise ValueError(
            f"column order [{order.numel()}] mixes heads: {int(mixed.sum())} of {heads} heads "
            f"take features from more than one head"
        )


def log2_group_size(dim: int, heads: int) -> float:
    """Return log2 of the number of admissible column permutations, (dim / heads)!^heads heads!.

    Parameters
    ----------
    dim, heads : int
        As for `sample_column_order`; ViT-B (768, 12) has 2**3580.8.

    Raises
    ------
    ValueError
        If `heads` does not divide `dim`.
    """
    size = _head_size(dim, heads)
    return (heads * math.lgamma(size + 1) + math.lgamma(heads + 1)) / math.log(2)


def _head_size(dim: int, heads: int) -> int:
    if heads < 1 or dim % heads:
        raise ValueError(f"{dim} features cannot be split into {heads} equal heads")
    return dim // heads
