# SPDX-License-Identifier: Apache-2.0
"""Parameters seen from the columns: which axes a key permutes, brought to the front."""

import torch
from torch import Tensor

from equivariance.locking.architectures import Stack
from equivariance.rules import Axis, axes_of

__all__ = ["column_axes", "permuted_axes", "standardised"]


def permuted_axes(name: str, tensor: Tensor, stack: Stack) -> list[int]:
    """Return which axes of a block's parameter the column key permutes."""
    kinds = {Axis.STREAM}
    if stack.inner == "headwise":
        kinds |= {Axis.INNER, Axis.QKV}
    axes = axes_of(name, tensor.ndim, stack.rules) or ()
    return [index for index, axis in enumerate(axes) if axis in kinds]


def column_axes(tensor: Tensor, axes: list[int], dim: int) -> Tensor:
    """Bring permuted axes to the front, [dim] * len(axes) + [all other entries].

    A fused axis of several times `dim` entries, all permuted alike, counts as `dim` columns.
    """
    shape: list[int] = []
    front: list[int] = []
    for index, size in enumerate(tensor.shape):
        if index in axes:
            front.append(len(shape) + 1)
            shape += [size // dim, dim]
        else:
            shape.append(size)
    whole = tensor.reshape(shape).movedim(front, list(range(len(front))))
    return whole.reshape(*[dim] * len(front), -1)


def standardised(tensor: Tensor) -> Tensor:
    """Shift and scale to mean 0 and variance 1, in float32; a constant tensor becomes 0.

    Both are invariant to permutation, so they do the same to a locked parameter and a plain one.
    """
    values = tensor.to(torch.float64)
    centred = values - values.mean()
    spread = centred.square().mean().sqrt()
    # The spread of equal values is rounding noise, not signal.
    if spread <= 1e-9 * values.abs().max():
        return torch.zeros_like(values, dtype=torch.float32)
    return (centred / spread).float()
