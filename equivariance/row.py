# SPDX-License-Identifier: Apache-2.0
"""Row permutations: the order of a sample's tokens.

A stack of Transformer blocks obeys Enc(P_R Z) = P_R Enc(Z) with unchanged weights, and its weight
gradients are identical (paper, row permutation, forward and backward); a different P_R for each
sample of a batch is as good as a common one. It does not hold under a causal mask, a padding mask
that is not permuted along, rotary positions inside the stack, or active dropout and drop-path.

Permuting by index costs a copy of `x` and no floating point operation; the paper's dense
matrices cost 2 B N^2 D of them.
"""

import torch
from torch import Tensor

from equivariance.order import invert, reorder

__all__ = ["permute_rows", "unpermute_rows", "with_prefix"]


def permute_rows(x_BND: Tensor, order: Tensor) -> Tensor:
    """Permute the tokens: `out[b, i] = x[b, order[b, i]]`.

    Differentiable any number of times; the gradient is `unpermute_rows` of the incoming one,
    exactly.

    Parameters
    ----------
    x_BND : Tensor
        [B, N, ...]: any dtype, any number of feature axes (none included).
    order : Tensor
        [N], the same for all samples, or [B, N]; int64, on the device of `x_BND`, every row a
        permutation (see `check_permutation`).

    Returns
    -------
    Tensor
        New tensor shaped like `x_BND`.

    Raises
    ------
    ValueError
        If `order` is not int64, or is shaped for another number of tokens or samples.
    """
    _check_fits(x_BND, order)
    if order.ndim == 1:
        return reorder(x_BND, order, 1)
    # One selection over the flattened batch copies whole rows, several times faster than a gather.
    batch, tokens = order.shape
    first_row_B1 = torch.arange(0, batch * tokens, tokens, device=order.device).unsqueeze(1)
    rows = (order + first_row_B1).flatten()
    return reorder(x_BND.flatten(0, 1), rows, 0).reshape(x_BND.shape)


def unpermute_rows(x_BND: Tensor, order: Tensor) -> Tensor:
    """Undo `permute_rows`: `out[b, order[b, i]] = x[b, i]`.

    Parameters, result and errors are those of `permute_rows`.
    """
    _check_fits(x_BND, order)
    return permute_rows(x_BND, invert(order))


def with_prefix(order_patches: Tensor, prefix: int) -> Tensor:
    """Extend an order of patches to all tokens, leaving the leading ones where they are.

    At the cut the CLS and register tokens are the same for every sample, so permuting them hides
    nothing, and a CLS token at index 0 spares the trunk the return of all others.

    Parameters
    ----------
    order_patches : Tensor
        [N] or [B, N], int64.
    prefix : int
        Number of leading tokens, >= 0.

    Returns
    -------
    Tensor
        [prefix + N] or [B, prefix + N], int64.
    """
    kept = torch.arange(prefix, device=order_patches.device)
    kept = kept.expand(*order_patches.shape[:-1], prefix)
    return torch.cat((kept, order_patches + prefix), dim=-1)


def _check_fits(x_BND: Tensor, order: Tensor) -> None:
    if order.dtype != torch.int64:
        raise ValueError(f"a row order must be int64; got {order.dtype} {list(order.shape)}")
    shape = tuple(x_BND.shape)
    if x_BND.ndim < 2 or tuple(order.shape) not in (shape[1:2], shape[:2]):
        raise ValueError(
            f"row order {list(order.shape)} does not fit x {list(shape)}: "
            f"for x [B, N, ...] it must be [N] or [B, N]"
        )
