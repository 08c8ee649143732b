# SPDX-License-Identifier: Apache-2.0
"""Conjugation: the weights that make a stack of blocks commute with a column permutation.

With weights conjugated by P_C, T_(C)(Z P_C) = T(Z) P_C, and every weight gradient is the
conjugated gradient, dW_(C) = P_C^-1 dW P_C (paper, column permutation, forward and backward). So
optimisers that work entry by entry, with momentum, weight decay or second moments, train the
conjugated model exactly as the plain one, and gradients and moments are conjugated like weights.
Dropout is not covered: its mask would have to be permuted too.
"""

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn

from equivariance.column import Inner, check_headwise
from equivariance.order import check_permutation, reorder
from equivariance.permutation import ColumnPermutation
from equivariance.rules import TIMM_VIT_BLOCK_RULES, Axis, Rule, axes_of

__all__ = [
    "ConjugationError",
    "Inner",
    "conjugate_",
    "conjugate_optimizer_",
    "conjugate_state",
    "conjugate_tensor",
]


class ConjugationError(ValueError):
    """Some parameters cannot be conjugated. The message lists all of them with the reason."""


def conjugate_state(
    state: Mapping[str, Tensor],
    order: Tensor | ColumnPermutation,
    *,
    heads: int | None = None,
    inner: Inner = "headwise",
    rules: Sequence[Rule] = TIMM_VIT_BLOCK_RULES,
) -> dict[str, Tensor]:
    """Conjugate parameters by a column permutation.

    Works as well on gradients and on optimiser moments that are shaped like their parameters.
    The inverse permutation undoes it.

    Parameters
    ----------
    state : mapping of str to Tensor
        By parameter name, e.g. `blocks.state_dict()`.
    order : Tensor or ColumnPermutation
        Column permutation [D], int64; features enter the conjugated stack as
        `permute_columns(z, order)`. A `ColumnPermutation` says `heads` and `inner` itself.
    heads : int, optional
        Attention heads; for a Tensor with `inner="headwise"` it must be given.
    inner : {"headwise", "none"}
        `headwise` is the paper's: queries, keys, values and the input of the attention's output
        projection are permuted too, and `order` must not mix heads. `none` leaves them: any of
        the D! orders works, and models that normalise queries and keys are covered.
    rules : sequence of Rule
        What each parameter's axes are; the first match counts whose number of axes fits, else the
        first. Those of a model: `rules_for`; of an architecture's blocks: `RULES`.

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


def conjugate_tensor(
    name: str,
    tensor: Tensor,
    order: Tensor | ColumnPermutation,
    *,
    heads: int | None = None,
    inner: Inner = "headwise",
    rules: Sequence[Rule] = TIMM_VIT_BLOCK_RULES,
) -> Tensor:
    """Conjugate one parameter, e.g. of a file that is too large to be read at once.

    Parameters, result and errors are those of `conjugate_state`.
    """
    state = {name: tensor}
    return conjugate_state(state, order, heads=heads, inner=inner, rules=rules)[name]


@torch.no_grad()
def conjugate_(
    module: nn.Module,
    order: Tensor | ColumnPermutation,
    *,
    heads: int | None = None,
    inner: Inner = "headwise",
    rules: Sequence[Rule] = TIMM_VIT_BLOCK_RULES,
) -> None:
    """Conjugate a module's parameters and buffers, and its gradients where it has some, in place.

    An optimiser's moments are not the module's: see `conjugate_optimizer_`.
    On an error nothing has changed. Parameters and errors are those of `conjugate_state`; a
    ValueError also tells of rotary positions in the module, which `headwise` would break.
    """
    state = dict(module.named_parameters()) | dict(module.named_buffers())
    plan = _plan(state, order, heads=heads, inner=inner, rules=rules)
    _check_no_rotary(module, order.inner if isinstance(order, ColumnPermutation) else inner)
    for name, tensor in state.items():
        tensor.copy_(_apply(tensor, plan[name]))
        if tensor.grad is not None:
            tensor.grad.copy_(_apply(tensor.grad, plan[name]))


@torch.no_grad()
def conjugate_optimizer_(
    optimizer: torch.optim.Optimizer,
    module: nn.Module,
    order: Tensor | ColumnPermutation,
    *,
    heads: int | None = None,
    inner: Inner = "headwise",
    rules: Sequence[Rule] = TIMM_VIT_BLOCK_RULES,
) -> None:
    """Conjugate an optimiser's state in place: momentum, first and second moments.

    With `conjugate_` on the module itself, training goes on as if it had been conjugated from the
    start. State of parameters that are not the module's stays as it is.

    Parameters
    ----------
    optimizer : Optimizer
        Works entry by entry: its state tensors are shaped like their parameter, or single numbers.
    module : nn.Module
        Whose parameters the optimiser trains.
    order, heads, inner, rules
        As for `conjugate_state`.

    Raises
    ------
    ValueError
        As `conjugate_state`.
    ConjugationError
        As `conjugate_state`, or if a state tensor has another shape than its parameter, as
        factored moments have. Nothing has changed then.
    """
    parameters = dict(module.named_parameters())
    plan = _plan(parameters, order, heads=heads, inner=inner, rules=rules)
    moments = [
        (name, key, value)
        for name, parameter in parameters.items()
        for key, value in optimizer.state.get(parameter, {}).items()
        if isinstance(value, Tensor) and (value.numel() > 1 or value.shape == parameter.shape)
    ]
    _raise_all(
        f"{name} {list(parameters[name].shape)}: the optimiser's {key} is {list(value.shape)}"
        for name, key, value in moments
        if value.shape != parameters[name].shape
    )
    for name, _, value in moments:
        value.copy_(_apply(value, plan[name]))


_AxisOrders = tuple[Tensor | None, ...]


def _plan(
    state: Mapping[str, Tensor],
    order: Tensor | ColumnPermutation,
    *,
    heads: int | None,
    inner: Inner,
    rules: Sequence[Rule],
) -> dict[str, _AxisOrders]:
    """Give each parameter the permutation of each of its axes, or None; report all misfits."""
    orders = _axis_orders(order, heads=heads, inner=inner)
    plan: dict[str, _AxisOrders] = {}
    problems: list[str] = []
    for name, tensor in state.items():
        axes = axes_of(name, tensor.ndim, rules)
        problem = _problem(tensor, axes, orders)
        if axes is None or problem:
            problems.append(f"{name} {list(tensor.shape)}: {problem}")
        else:
            plan[name] = tuple(orders[axis] for axis in axes)
    _raise_all(problems)
    return plan


def _raise_all(problems: Iterable[str]) -> None:
    lines = [f"  {problem}" for problem in problems]
    if lines:
        raise ConjugationError("\n".join(["cannot conjugate these parameters:", *lines]))


def _axis_orders(
    order: Tensor | ColumnPermutation, *, heads: int | None, inner: Inner
) -> dict[Axis, Tensor | None]:
    """Give the permutation of each kind of axis; a kind that cannot be permuted is missing."""
    if isinstance(order, ColumnPermutation):
        if heads is not None and heads != order.heads:
            raise ValueError(f"heads {heads}: the column permutation is for {order.heads}")
        heads, inner, order = order.heads, order.inner, order.order
    orders: dict[Axis, Tensor | None] = {Axis.STREAM: order, Axis.KEEP: None}
    if inner == "none":
        check_permutation(order)
        return orders | dict.fromkeys((Axis.INNER, Axis.QKV, Axis.HEAD))
    if inner != "headwise":
        raise ValueError(f"inner {inner!r} is unknown; allowed are headwise, none")
    if heads is None:
        raise ValueError('heads must be given for inner="headwise"')
    check_headwise(order, heads)
    thirds = torch.arange(3, device=order.device).unsqueeze(1) * order.numel()
    return orders | {Axis.INNER: order, Axis.QKV: (order + thirds).flatten()}


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


def _check_no_rotary(module: nn.Module, inner: Inner) -> None:
    if inner == "none":
        return
    for name, part in module.named_modules():
        kind = type(part).__name__
        if any(word in kind.lower() for word in ("rotary", "rope")):
            raise ValueError(
                f"{name or 'the model'} ({kind}): rotary positions pair features of a head, "
                f'so these must stay: use inner="none", or a ColumnPermutation without heads'
            )
