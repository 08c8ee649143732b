# SPDX-License-Identifier: Apache-2.0
"""What a model says of itself: its blocks, its heads, the width of its stream."""

from collections.abc import Sequence

from torch import nn

from equivariance.heads import attention_heads
from equivariance.rules import Rule, architecture_of
from equivariance.stack import block_modules, stream_features

__all__ = ["find_blocks", "find_heads", "find_width"]


def find_blocks(model: nn.Module) -> list[nn.Module]:
    """Return the blocks of a model of known architecture, in their order.

    Raises
    ------
    UnknownArchitectureError
        If the architecture is unknown.
    ValueError
        If there is not exactly one stack of blocks.
    """
    return list(block_modules(model, architecture_of(model)).values())


def find_heads(model: nn.Module) -> int | None:
    """Return the number of attention heads, if the model's modules agree on one."""
    numbers = set(attention_heads(model).values())
    return numbers.pop() if len(numbers) == 1 else None


def find_width(model: nn.Module, rules: Sequence[Rule]) -> int:
    """Return the width of the residual stream.

    Raises
    ------
    ValueError
        If no parameter tells.
    """
    return stream_features({name: p.shape for name, p in model.named_parameters()}, rules)
