# SPDX-License-Identifier: Apache-2.0
"""How many attention heads a model's modules say they have."""

from torch import nn

__all__ = ["attention_heads"]

_NAMES = ("num_heads", "num_attention_heads")


def attention_heads(module: nn.Module) -> dict[str, int]:
    """Return the number of heads of each submodule that has one, by the submodule's name."""
    return {
        name: heads
        for name, part in module.named_modules()
        for attribute in _NAMES
        if type(heads := getattr(part, attribute, None)) is int
    }
