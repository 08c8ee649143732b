# SPDX-License-Identifier: Apache-2.0
"""What a model says of itself: its blocks, its heads, the width of its stream."""

import re
from collections.abc import Sequence

from torch import nn

from equivariance.rules import Axis, Rule, architecture_of

__all__ = ["find_blocks", "find_heads", "stream_features"]


def find_blocks(model: nn.Module) -> list[nn.Module]:
    """Return the blocks of a model of known architecture, in their order.

    Raises
    ------
    UnknownArchitectureError
        If the architecture is unknown.
    ValueError
        If there is not exactly one stack of blocks.
    """
    architecture = architecture_of(model)
    pattern = re.compile(architecture.stack)
    stacks = {
        name: list(module.children())
        for name, module in model.named_modules()
        if pattern.fullmatch(name) and isinstance(module, nn.Sequential | nn.ModuleList)
    }
    if len(stacks) != 1 or not all(stacks.values()):
        found = ", ".join(stacks) or "none"
        raise ValueError(
            f"model of architecture {architecture.name}: one stack of blocks is wanted; "
            f"found are: {found}"
        )
    return next(iter(stacks.values()))


def find_heads(model: nn.Module) -> int | None:
    """Return the number of attention heads, if the model's modules agree on one."""
    names = ("num_heads", "num_attention_heads")
    found = {getattr(module, name, None) for module in model.modules() for name in names}
    numbers = {value for value in found if isinstance(value, int)}
    return numbers.pop() if len(numbers) == 1 else None


def stream_features(model: nn.Module, rules: Sequence[Rule]) -> int:
    """Return the width of the residual stream: of the first parameter that has it as an axis.

    Raises
    ------
    ValueError
        If none has.
    """
    for name, parameter in model.named_parameters():
        for rule in rules:
            fits = rule.pattern.fullmatch(name) and len(rule.axes) == parameter.ndim
            if fits and Axis.STREAM in rule.axes:
                return parameter.shape[rule.axes.index(Axis.STREAM)]
    raise ValueError("no parameter of the model tells the width of its stream")
