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
from equivariance.heads import attention_heads
from equivariance.order import check_permutation, reorder
from equivariance.permutation import ColumnPermutation
from equivariance.rotary import rotary_module
from equivariance.rules import TIMM_VIT_BLOCK_RULES, Axis, Rule, axes_of

__all__ = [
    "ConjugationError",
    "Inner",
    "conjugate_",
    "conjugate_optimizer_",
    "conjugate_state",
    "conjugate_tensor",
    "conjugate_unchecked_",
]


_AxisOrders = tuple[Tensor | None, ...]


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
    On an error nothing has changed. Parameters and errors are those of `conjugate_state`. Besides,
    a ValueError tells of rotary positions, or of attention with other heads, which `headwise` would
    break, and a ConjugationError of parameters that share their memory and not their rule.
    """
    _check_headwise_fits(module, order, inner, rules)
    conjugate_unchecked_(module, order, heads=heads, inner=inner, rules=rules)


@torch.no_grad()
def conjugate_unchecked_(
    module: nn.Module,
    order: Tensor | ColumnPermutation,
    *,
    heads: int | None,
    inner: Inner,
    rules: Sequence[Rule],
) -> None:
    """Do what `conjugate_` does, whatever heads or rotary positions the module has.

    To see what breaks then; parameters and other errors are those of `conjugate_`.
    """
    state = _named_tensors(module)
    tied = _tied(state, rules)
    known = {name: state[name] for names in tied for name in names}
    plan = _plan(known, order, heads=heads, inner=inner, rules=rules)
    _raise_all(
        f"{name} {list(state[name].shape)}: is tied to {first}, which has another rule"
        for first, *others in tied
        for name in others
        if not all(map(_same_order, plan[first], plan[name]))
    )
    for name, *_ in tied:
        tensor = state[name]
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
        factored moments have, or is in a list or mapping of the optimiser, as preconditioners and
        the history of L-BFGS are. Nothing has changed then.
    """
    _check_headwise_fits(module, order, inner, rules)
    parameters = dict(module.named_parameters())
    plan = _plan(parameters, order, heads=heads, inner=inner, rules=rules)
    states = [
        (name, key, value)
        for name, parameter in parameters.items()
        for key, value in optimizer.state.get(parameter, {}).items()
    ]
    moments = [
        (name, key, value)
        for name, key, value in states
        if isinstance(value, Tensor)
        and (value.numel() > 1 or value.shape == parameters[name].shape)
    ]
    misfits = [
        f"{name} {list(parameters[name].shape)}: the optimiser's {key} is {list(value.shape)}"
        for name, key, value in moments
        if value.shape != parameters[name].shape
    ]
    misfits += [
        f"{name} {list(parameters[name].shape)}: the optimiser's {key} is a {type(value).__name__} "
        f"of tensors"
        for name, key, value in states
        if not isinstance(value, Tensor) and _holds_tensors(value)
    ]
    _raise_all(misfits)
    for name, _, value in moments:
        value.copy_(_apply(value, plan[name]))


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


def _named_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Return parameters and buffers by all their names: tied ones have several."""
    parameters = module.named_parameters(remove_duplicate=False)
    return dict(parameters) | dict(module.named_buffers(remove_duplicate=False))


def _tied(state: Mapping[str, Tensor], rules: Sequence[Rule]) -> list[list[str]]:
    """Return the names of each tensor that have a rule, or one name if none has."""
    names: dict[tuple[object, ...], list[str]] = {}
    for name, tensor in state.items():
        names.setdefault(_memory(tensor), []).append(name)
    ruled = {n: axes_of(n, tensor.ndim, rules) is not None for n, tensor in state.items()}
    return [[n for n in group if ruled[n]] or group[:1] for group in names.values()]


def _memory(tensor: Tensor) -> tuple[object, ...]:
    """Tell tensors apart by the memory that they stand for."""
    if tensor.is_meta or not tensor.numel():
        return (id(tensor),)
    return (tensor.device, tensor.data_ptr(), tensor.shape, tensor.stride())


def _same_order(one: Tensor | None, other: Tensor | None) -> bool:
    return one is other or (one is not None and other is not None and torch.equal(one, other))


def _holds_tensors(value: object) -> bool:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return any(_holds_tensors(item) for item in value)
    return isinstance(value, Tensor)


def _check_headwise_fits(
    module: nn.Module, order: Tensor | ColumnPermutation, inner: Inner, rules: Sequence[Rule]
) -> None:
    """Check that a permutation inside attention keeps to the heads that the module really has."""
    if isinstance(order, ColumnPermutation):
        inner, order = order.inner, order.order
    if inner == "none":
        return
    rotary = rotary_module(module)
    if rotary is not None:
        raise ValueError(
            f"{rotary}: rotary positions pair features of a head, "
            f'so these must stay: use inner="none", or a ColumnPermutation without heads'
        )
    in_heads = [
        name
        for name, tensor in _named_tensors(module).items()
        if not {Axis.INNER, Axis.QKV}.isdisjoint(axes_of(name, tensor.ndim, rules) or ())
    ]
    for name, heads in attention_heads(module).items():
        prefix = f"{name}." if name else ""
        if not any(inside.startswith(prefix) for inside in in_heads):
            continue  # e.g. an attention pool, whose inside is left alone
        try:
            check_headwise(order, heads)
        except ValueError as error:
            raise ValueError(f"{name or 'the model'} has {heads} heads: {error}") from error
