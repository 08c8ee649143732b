# SPDX-License-Identifier: Apache-2.0
"""Small random stacks of timm blocks in float64."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from timm.models.vision_transformer import Block
from torch import nn


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def randomise() -> Callable[[nn.Module], nn.Module]:
    """Return a function that makes a module float64 and redraws all its parameters."""

    def redraw(module: nn.Module) -> nn.Module:
        generator = torch.Generator().manual_seed(0)
        module.double()
        with torch.no_grad():
            for parameter in module.parameters():
                # Away from 0 and 1, so that no gain, bias or LayerScale is trivially permuted.
                parameter.normal_(0.1, 0.4, generator=generator)
        return module

    return redraw


@pytest.fixture(scope="session")
def make_blocks(randomise: Callable[[nn.Module], nn.Module]) -> Callable[..., nn.Module]:
    """Return a factory of stacks of blocks."""

    def make(dim: int = 16, heads: int = 4, *, depth: int = 2, **options: Any) -> nn.Module:
        options = {"qkv_bias": True, **options}
        return randomise(nn.Sequential(*(Block(dim, heads, **options) for _ in range(depth))))

    return make


@pytest.fixture(scope="session")
def perturb() -> Callable[[nn.Module], nn.Module]:
    """Return a function that makes a module float64, for evaluation, and shifts all parameters.

    Gentler than `randomise`: activations keep the size that the initialisation gives them, however
    wide the model.
    """

    def shift(module: nn.Module) -> nn.Module:
        generator = torch.Generator().manual_seed(0)
        module.double().eval()
        with torch.no_grad():
            for parameter in module.parameters():
                noise = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
                parameter.add_(noise, alpha=0.05)
        return module

    return shift
