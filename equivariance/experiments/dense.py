# SPDX-License-Identifier: Apache-2.0
"""Permutations as dense matrices, as the paper's code has them: only to measure what they cost."""

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["dense_columns", "dense_matrix", "dense_rows"]

Permute = Callable[[Tensor], Tensor]


def dense_matrix(order: Tensor, dtype: torch.dtype) -> Tensor:
    """Return P [N, N] with `(P @ x)[i] = x[order[i]]` for an order [N]."""
    return torch.eye(order.numel(), dtype=dtype, device=order.device)[order]


def dense_rows(order: Tensor, dtype: torch.dtype) -> tuple[Permute, Permute]:
    """Return what permutes tokens of x [B, N, D] by one matrix, and what undoes it.

    The inverse is the transpose; the paper's code inverts the matrix at every step, which is
    slower.
    """
    matrix = dense_matrix(order, dtype)
    return (lambda x: matrix @ x), (lambda x: matrix.T @ x)


def dense_columns(order: Tensor, dtype: torch.dtype) -> tuple[Permute, Permute]:
    """Return what permutes features of x [B, N, D] by one matrix, and what undoes it."""
    matrix = dense_matrix(order, dtype)
    return (lambda x: x @ matrix.T), (lambda x: x @ matrix)
