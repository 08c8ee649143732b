# SPDX-License-Identifier: Apache-2.0
"""Conjugation: the weights that make a stack of blocks commute with a column permutation.

With weights conjugated by P_C, T_(C)(Z P_C) = T(Z) P_C, and every weight gradient is the
conjugated gradient, dW_(C) = P_C^-1 dW P_C (paper, column permutation, forward and backward). So
optimisers that work entry by entry, with momentum, weight decay or second moments, train the
conjugated model exactly as the plain one, and gradients and moments are conjugated like weights.
Dropout is not covered: its mask would have to be permuted too.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from equivariance.column import check_headwise
from equivariance.order import check_permutation, reorder
from equivariance.rules import TIMM_VIT_BLOCK_RULES, Axis, Rule

__all__ = ["ConjugationError", "Inner", "conjugate_", "conjugate_state"]

Inner = Literal["headwise", "none"]


class ConjugationError(ValueError):
    """Some parameters cannot be conjugated. The message lists all of them with the reason."""


def conjugate_state(
    state: Mapping[str, Tensor],
    order: Tensor,
    *,
    heads: int,
    inner: Inner = "headwise",
    rules: Sequence[Rule] = TIMM_VIT_BLOCK_RULES,
) -> dict[str, Tensor]:
    """Conjugate parameters by a column permutation.

    Works as well on gradients and on optimiser moments that are shaped like their parameters.
    `invert(order)` undoes it.

    Parameters
    ----------
    state : mapping of str to Tensor
        By parameter name, e.g. `blocks.state_dict()`.
    order : Tensor
        Column permutation [D], int64; features enter the conjugated stack as
        `permute_columns(z, order)`.
    heads : int
        Attention heads.
    inner : {"headwise", "none"}
        `headwise` is the paper's: queries, keys, values and the input of the attention's output
        projection are permuted too, and `order` must not mix heads. `none` leaves them: any of
        the D! orders works, and models that normalise queries and keys are covered.
    rules : sequence of Rule
        What each parameter's axes are; the first match counts. See `equivariance.rules.RULES`.

    Returns
    -------
    dict of str to Tensor
        New tensors, differentiable functions of the given ones, on the same devices.

    Raises
    ------
    ValueError
        If `order` is no permutation, or mixes heads where it must not.
    ConjugationError
        If a parameter has no rule, does not fit its rule, or cannot be conjugated headwise.
    """
    plan = _plan(state, order, heads=heads, inner=inner, rules=rules)
    return {name: _apply(tensor, plan[name]) for name, tensor in state.items()}


@torch.no_grad()
def conjugate_(
    module: nn.Module,
    order: Tensor,
    *,
    heads: int,
    inner: Inner = "headwise",
    rules: Sequence[Rule] = TIMM_VIT_BLOCK_RULES,
) -> None:
    """Conjugate a module's parameters and buffers, and its gradients where it has some, in place.

    An optimiser's moments are not the module's: conjugate them with `conjugate_state`.
    On an error nothing has changed. Parameters and errors are those of `conjugate_state`.
    """
    state = dict(module.named_parameters()) | dict(module.named_buffers())
    plan = _plan(state, order, heads=heads, inner=inner, rules=rules)
    for name, tensor in state.items():
        tensor.copy_(_apply(tensor, plan[name]))
        if tensor.grad is not None:
            tensor.grad.copy_(_apply(tensor.grad, plan[name]))


_AxisOrders = tuple[Tensor | None, ...]


def _plan(
    state: Mapping[str, Tensor],
    order: Tensor,
    *,
    heads: int,
    inner: Inner,
    rules: Sequence[Rule],
) -> dict[str, _AxisOrders]:
    """Give each parameter the permutation of each of its axes, or None; report all misfits."""
    orders = _axis_orders(order, heads=heads, inner=inner)
    plan: dict[str, _AxisOrders] = {}
    problems: list[str] = []
    for name, tensor in state.items():
        axes = _axes(name, rules)
        problem = _problem(tensor, axes, orders)
        if axes is None or problem:
            problems.append(f"  {name} {list(tensor.shape)}: {problem}")
        else:
            plan[name] = tuple(orders[axis] for axis in axes)
    if problems:
        raise ConjugationError("\n".join(["cannot conjugate these parameters:", *problems]))
    return plan


def _axis_orders(order: Tensor, *, heads: int, inner: Inner) -> dict[Axis, Tensor | None]:
    """Give the permutation of each kind of axis; a kind that cannot be permuted is missing."""
    orders: dict[Axis, Tensor | None] = {Axis.STREAM: order, Axis.KEEP: None}
    if inner == "none":
        check_permutation(order)
        return orders | dict.fromkeys((Axis.INNER, Axis.QKV, Axis.HEAD))
    if inner != "headwise":
        raise ValueError(f"inner {inner!r} is unknown; allowed are headwise, none")
    check_headwise(order, heads)
    thirds = torch.arange(3, device=order.device).unsqueeze(1) * order.numel()
    return orders | {Axis.INNER: order, Axis.QKV: (order + thirds).flatten()}


def _axes(name: str, rules: Iterable[Rule]) -> tuple[Axis, ...] | None:
    return next((rule.axes for rule in rules if rule.pattern.fullmatch(name)), None)


def _problem(
    tensor: Tensor, axes: tuple[Axis, ...] | None, orders: Mapping[Axis, Tensor | None]
) -> str | None:
    if axes is None:
        return "no rule for this name"
    if any(axis not in orders for axis in axes):
        return 'all heads share it, so features inside a head must stay: use inner="none"'
    if len(axes) != tensor.ndim:
        return f"its rule expects {len(axes)} axes"
    for axis, size in zip(axes, tensor.shape, strict=True):
        order = orders[axis]
        if order is not None and order.numel() != size:
            return f"its rule expects {order.numel()} where it has {size}"
    return None


def _apply(tensor: Tensor, axis_orders: _AxisOrders) -> Tensor:
    result = tensor.clone() if all(order is None for order in axis_orders) else tensor
    for dim, order in enumerate(axis_orders):
        if order is not None:
            result = reorder(result, order.to(tensor.device), dim)
    return result
