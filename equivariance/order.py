# SPDX-License-Identifier: Apache-2.0
"""Permutations as index tensors: inverse, composition, check, and application along an axis."""

from typing import Any

import torch
from torch import Tensor

__all__ = ["check_permutation", "compose", "invert", "reorder"]


def invert(order: Tensor) -> Tensor:
    """Inverse permutation: `invert(order)[..., order[..., i]] == i`.

    Parameters
    ----------
    order : Tensor
        One permutation [N] or one per sample [B, N], int64.

    Returns
    -------
    Tensor
        Same shape, dtype and device.
    """
    positions = torch.arange(order.shape[-1], device=order.device).expand_as(order)
    return torch.empty_like(order, memory_format=torch.contiguous_format).scatter_(
        -1, order, positions
    )


def compose(first: Tensor, second: Tensor) -> Tensor:
    """Return the one permutation that equals applying `first`, then `second`.

    Parameters
    ----------
    first, second : Tensor
        [N] or [B, N] each, int64, same N. A single one is taken for every sample of the other.

    Returns
    -------
    Tensor
        [N] if both are single, else [B, N].
    """
    shape = max(first.shape, second.shape, key=len)
    return first.expand(shape).gather(-1, second.expand(shape))


def check_permutation(order: Tensor) -> None:
    """Check that every row of `order` holds each of 0 ... N-1 once.

    Costs a sort, and on an accelerator a synchronisation: call it where an order enters the
    program (a key file, a message), not at every step.

    Parameters
    ----------
    order : Tensor
        [N] or [B, N].

    Raises
    ------
    ValueError
        If the dtype is not int64, the shape is neither [N] nor [B, N], or a row is no permutation.
    """
    if order.dtype != torch.int64 or order.ndim not in (1, 2):
        raise ValueError(
            f"an order is an int64 tensor [N] or [B, N]; got {order.dtype} {list(order.shape)}"
        )
    positions = torch.arange(order.shape[-1], device=order.device)
    if not bool((order.sort(dim=-1).values == positions).all()):
        raise ValueError(
            f"order {list(order.shape)} is not a permutation: "
            f"each of 0 ... {order.shape[-1] - 1} must occur once per row"
        )


class _Reorder(torch.autograd.Function):
    """`index_select` whose gradient selects by the inverse permutation.

    The built-in gradient adds into zeros, which takes atomics on a GPU because indices might
    repeat. Those of a permutation do not: a second selection is faster, deterministic and exact.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, order: Tensor, dim: int) -> Tensor:
        return x.index_select(dim, order)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, int], output: Tensor) -> None:
        _, order, ctx.dim = inputs
        ctx.save_for_backward(order)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None, None]:
        (order,) = ctx.saved_tensors
        return reorder(grad_outputs[0], invert(order), ctx.dim), None, None


def reorder(x: Tensor, order: Tensor, dim: int) -> Tensor:
    """Permute `x` along one axis; the gradient is permuted back, bit for bit.

    Parameters
    ----------
    x : Tensor
        Any shape.
    order : Tensor
        A permutation [x.shape[dim]], int64. Not verified: with repeated indices the gradient
        would be wrong (see `check_permutation`).
    dim : int
        The axis.

    Returns
    -------
    Tensor
        New tensor shaped like `x`.
    """
    result: Tensor = _Reorder.apply(x, order, dim)
    return result
