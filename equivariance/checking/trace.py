# SPDX-License-Identifier: Apache-2.0
"""A trace of one run: what each submodule takes and gives, forward and backward."""

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from itertools import takewhile
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from equivariance.checking.arrangement import Arrangement, map_tensors

__all__ = ["Call", "Trace", "backward", "bind", "forward", "invoke", "tensors_in"]

_NAMELESS = "argument "  # what is left for `*args`


@dataclass(slots=True)
class Call:
    """One call of one submodule.

    Parameters
    ----------
    name : str
        Of the submodule; empty for the model itself. Repeated calls are numbered, `name#2`.
    module : nn.Module
        The submodule.
    inputs : list of Tensor
        The floating point tensors that it took.
    outputs : list of Tensor
        All tensors that it gave.
    arguments : dict
        All that it took, by name.
    """

    name: str
    module: nn.Module
    inputs: list[Tensor]
    outputs: list[Tensor]
    arguments: dict[str, Any]


@dataclass(slots=True)
class Trace:
    """All calls in the order in which they end, the model's own last."""

    calls: list[Call] = field(default_factory=list)
    leaves: dict[str, Tensor] = field(default_factory=dict)
    result: Any = None

    @property
    def outputs(self) -> list[Tensor]:
        """All tensors that the model returned."""
        return self.calls[-1].outputs


def tensors_in(value: Any, *, floating: bool = True) -> Iterator[Tensor]:
    """Find tensors in nested sequences, mappings and dataclasses, in their order.

    Parameters
    ----------
    value : Any
        Where to look.
    floating : bool
        Only those of floating point.
    """
    items: Iterable[Any] = ()
    if isinstance(value, Tensor):
        if value.is_floating_point() or not floating:
            yield value
    elif isinstance(value, Mapping):
        items = value.values()
    elif isinstance(value, list | tuple):
        items = value
    elif is_dataclass(value) and not isinstance(value, type):
        items = [getattr(value, field.name) for field in fields(value)]
    for item in items:
        yield from tensors_in(item, floating=floating)


def bind(module: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Name the arguments of a call by the signature of `forward`."""
    names = [parameter.name for parameter in _positional(module)]
    names += [f"{_NAMELESS}{index}" for index in range(len(names), len(args))]
    return dict(zip(names, args, strict=False)) | dict(kwargs)


def invoke(module: nn.Module, arguments: Mapping[str, Any]) -> Any:
    """Call a module with arguments that `bind` has named."""
    named = {name: v for name, v in arguments.items() if not name.startswith(_NAMELESS)}
    nameless = [v for name, v in arguments.items() if name.startswith(_NAMELESS)]
    if not nameless and not any(p.kind is p.POSITIONAL_ONLY for p in _positional(module)):
        return module(**named)
    leading = list(takewhile(named.__contains__, (p.name for p in _positional(module))))
    return module(*(named.pop(name) for name in leading), *nameless, **named)


def _positional(module: nn.Module) -> list[inspect.Parameter]:
    parameters = inspect.signature(module.forward).parameters.values()
    return [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def forward(
    model: nn.Module,
    inputs: Mapping[str, Any],
    *,
    blocks: Sequence[nn.Module] = (),
    arrangement: Arrangement | None = None,
) -> Trace:
    """Run a model and record it.

    Parameters
    ----------
    model : nn.Module
        Runs under a fixed seed, in the mode that it is in.
    inputs : mapping of str to Any
        Arguments by name; floating point tensors get a gradient.
    blocks : sequence of nn.Module, optional
        A stack within the model: with an arrangement, its stream is permuted just before the first
        one and permuted back just after the last; what else blocks take is permuted along.
    arrangement : Arrangement, optional
        For `blocks`.
    """
    trace = Trace()
    arguments: dict[str, Any] = {}
    for name, value in inputs.items():
        if isinstance(value, Tensor) and value.is_floating_point():
            trace.leaves[name] = value = value.detach().clone().requires_grad_()
        arguments[name] = value
    handles = list(_record(model, trace))
    if arrangement is not None:
        handles += _sandwich(blocks, arrangement)
    try:
        with torch.random.fork_rng(), torch.enable_grad():
            torch.manual_seed(0)
            trace.result = invoke(model, arguments)
    finally:
        for handle in handles:
            handle.remove()
    return trace


def backward(outputs: Sequence[Tensor], upstream: Sequence[Tensor]) -> None:
    """Send gradients back from outputs, as many as have a graph."""
    pairs = [(y, u) for y, u in zip(outputs, upstream, strict=True) if y.requires_grad]
    if pairs:
        torch.autograd.backward([y for y, _ in pairs], [u for _, u in pairs])


def _record(model: nn.Module, trace: Trace) -> Iterator[RemovableHandle]:
    seen: Counter[str] = Counter()

    def hook_of(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            seen[name] += 1
            arguments = bind(module, args, kwargs)
            outputs = list(tensors_in(output, floating=False))
            for tensor in outputs:
                if tensor.requires_grad:
                    tensor.retain_grad()
            label = name if seen[name] == 1 else f"{name}#{seen[name]}"
            inputs = list(tensors_in(arguments))
            trace.calls.append(Call(label, module, inputs, outputs, arguments))

        return hook

    for name, module in model.named_modules():
        yield module.register_forward_hook(hook_of(name), with_kwargs=True)


def _sandwich(blocks: Sequence[nn.Module], arrangement: Arrangement) -> Iterator[RemovableHandle]:
    def before(first: bool) -> Callable[..., tuple[tuple[Any, ...], dict[str, Any]]]:
        def hook(module: nn.Module, args: Any, kwargs: Any) -> tuple[Any, Any]:
            named = bind(module, args, kwargs)
            stream, *others = named
            changed = {stream: arrangement.stream(named[stream]) if first else named[stream]}
            for name in others:
                changed[name] = map_tensors(named[name], partial(arrangement.along, name))
            values = list(changed.values())
            return tuple(values[: len(args)]), {k: changed[k] for k in kwargs}

        return hook

    def after(module: nn.Module, args: Any, output: Any) -> Any:
        if isinstance(output, tuple):
            return (arrangement.undo(output[0]), *output[1:])
        return arrangement.undo(output)

    for index, block in enumerate(blocks):
        yield block.register_forward_pre_hook(before(index == 0), with_kwargs=True)
    yield blocks[-1].register_forward_hook(after)
