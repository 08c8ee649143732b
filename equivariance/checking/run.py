# SPDX-License-Identifier: Apache-2.0
"""The plain run of a model, with which permuted runs are compared."""

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from equivariance.checking.arrangement import Arrangement, Sizes, map_tensors
from equivariance.checking.stack import find_blocks
from equivariance.checking.trace import Trace, backward, bind, forward, tensors_in
from equivariance.rules import Scope

__all__ = ["PlainRun"]


@dataclass(frozen=True, kw_only=True)
class PlainRun:
    """A model, its inputs, and what it computed from them.

    Parameters
    ----------
    model : nn.Module
        A copy in the dtype of the check; holds no gradients.
    inputs : dict
        By name.
    sandwich : bool
        Permutations start at the first block and end after the last, not at the inputs.
    sizes : Sizes
        Of the stream.
    keep : collection of str
        Inputs that are not to be permuted along.
    trace : Trace
        Of the run.
    upstream : list of Tensor
        The gradient sent back from each output.
    gradients : dict of str to Tensor
        Those of parameters.
    """

    model: nn.Module
    inputs: dict[str, Any]
    sandwich: bool
    sizes: Sizes
    keep: Collection[str]
    trace: Trace
    upstream: list[Tensor]
    gradients: dict[str, Tensor]

    @classmethod
    def of(
        cls,
        model: nn.Module,
        inputs: Tensor | Sequence[Any] | Mapping[str, Any],
        *,
        at: str | None,
        keep: Collection[str],
        batch_first: bool,
        dtype: torch.dtype,
    ) -> "PlainRun":
        """Copy a model and run it; see `check_equivariance` for the parameters."""
        model = copy.deepcopy(_unwrapped(model)).to(dtype)
        model.zero_grad(set_to_none=True)
        named = _named(model, inputs, dtype)
        first = next(iter(named.values()))
        sandwich = at == "blocks" or (at is None and first.ndim not in (2, 3))
        if not sandwich:
            sizes = Sizes.of(first, batch_first=batch_first)
            named = Arrangement(sizes=sizes).whole(named)
        trace = forward(model, named)
        if not trace.outputs:
            raise ValueError(
                f"the model returns {type(trace.result).__name__}, in which no tensor is found: "
                f"allowed are tensors, and sequences, mappings and dataclasses of them"
            )
        if sandwich:
            block = find_blocks(model)[0]
            entry = next(call for call in trace.calls if call.module is block)
            sizes = Sizes.of(next(tensors_in(entry.arguments)), batch_first=batch_first)
        if sizes.batch < 1:
            raise ValueError("inputs: the batch is empty; at least one sample is needed")
        generator = torch.Generator().manual_seed(0)
        upstream = [
            torch.randn(y.shape, generator=generator, dtype=_grad_dtype(y)).to(y.device)
            for y in trace.outputs
        ]
        backward(trace.outputs, upstream)
        gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
        model.zero_grad(set_to_none=True)
        return cls(
            model=model,
            inputs=named,
            sandwich=sandwich,
            sizes=sizes,
            keep=keep,
            trace=trace,
            upstream=upstream,
            gradients=gradients,
        )

    @property
    def scope(self) -> Scope:
        """What conjugation has to do with parameters outside the blocks."""
        return "blocks" if self.sandwich else "model"

    def arranged(self, arrangement: Arrangement) -> dict[str, Any]:
        """Return the inputs of a permuted run."""
        if self.sandwich:
            return self.inputs
        (stream, first), *others = self.inputs.items()
        return {stream: arrangement.stream(first)} | {
            name: map_tensors(value, partial(arrangement.along, name, feature=True))
            for name, value in others
        }

    def kept(self, arrangement: Arrangement) -> tuple[str, ...]:
        """Return the names of inputs about tokens that are not permuted along."""
        masks = [name for name, value in self.inputs.items() if _is_mask(name, value)]
        stuck = [
            name
            for name in masks
            if arrangement.along(name, self.inputs[name]) is self.inputs[name]
        ]
        return tuple(dict.fromkeys((*self.keep, *stuck)))


def _grad_dtype(y: Tensor) -> torch.dtype:
    """The dtype of what is sent back; whole numbers take nothing, but keep their place."""
    return y.dtype if y.is_floating_point() or y.is_complex() else torch.float64


def _unwrapped(model: nn.Module) -> nn.Module:
    """Return what a wrapper runs; inside `torch.compile` and replicas no submodule can be watched.

    Raises
    ------
    ValueError
        If the model is scripted or traced: submodules of such a one do not take hooks by name.
    """
    while True:
        if isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
            model = model.module
        elif isinstance(inner := getattr(model, "_orig_mod", None), nn.Module):
            model = inner
        else:
            break
    if any(isinstance(part, torch.jit.ScriptModule) for part in model.modules()):
        raise ValueError("the model is scripted or traced: give the module that it was made from")
    return model


def _is_mask(name: str, value: object) -> bool:
    return "mask" in name and isinstance(value, Tensor)


def _named(
    model: nn.Module, inputs: Tensor | Sequence[Any] | Mapping[str, Any], dtype: torch.dtype
) -> dict[str, Any]:
    """Name the inputs, and give floating point ones the dtype of the check."""
    if isinstance(inputs, Mapping):
        named = dict(inputs)
    else:
        named = bind(model, [inputs] if isinstance(inputs, Tensor) else inputs, {})
    if not named or not isinstance(next(iter(named.values())), Tensor):
        raise ValueError("inputs: the first must be a tensor, the stream or what it is made of")

    def convert(x: Tensor) -> Tensor:
        return x.to(dtype) if x.is_floating_point() else x

    return {name: map_tensors(value, convert) for name, value in named.items()}
