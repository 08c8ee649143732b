# SPDX-License-Identifier: Apache-2.0
"""Where a model's stack of blocks is, and how wide the stream through it."""

import re
from collections.abc import Mapping, Sequence

from torch import nn

from equivariance.rules import Architecture, Axis, Rule, axes_of

__all__ = ["block_modules", "stream_features"]


def block_modules(model: nn.Module, architecture: Architecture) -> dict[str, nn.Module]:
    """Return the blocks of a model by name, in their order.

    Raises
    ------
    ValueError
        If there is not exactly one stack of blocks.
    """
    pattern = re.compile(architecture.stack)
    stacks = {
        name: module
        for name, module in model.named_modules()
        if pattern.fullmatch(name) and isinstance(module, nn.Sequential | nn.ModuleList)
    }
    if len(stacks) != 1 or not all(len(blocks) for blocks in stacks.values()):
        found = ", ".join(stacks) or "none"
        raise ValueError(
            f"model of architecture {architecture.name}: one stack of blocks is wanted; "
            f"found are: {found}"
        )
    ((prefix, blocks),) = stacks.items()
    return {f"{prefix}.{index}": block for index, block in enumerate(blocks)}


def stream_features(shapes: Mapping[str, Sequence[int]], rules: Sequence[Rule]) -> int:
    """Return the width of the residual stream: of the first parameter that has it as an axis.

    Raises
    ------
    ValueError
        If none has.
    """
    for name, shape in shapes.items():
        axes = axes_of(name, len(shape), rules) or ()
        if Axis.STREAM in axes and len(axes) == len(shape):
            return shape[axes.index(Axis.STREAM)]
    raise ValueError("no parameter tells the width of the residual stream")
