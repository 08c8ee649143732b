# SPDX-License-Identifier: Apache-2.0
"""Tiny Vision Transformers of timm, and files of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from timm.models.vision_transformer import VisionTransformer
from torch import nn


@pytest.fixture(scope="session")
def make_vit(randomise: Callable[[nn.Module], nn.Module]) -> Callable[..., nn.Module]:
    """Return a factory of float64 models for images [B, 3, 8, 8], redrawn away from 0 and 1."""

    def make(dim: int = 16, heads: int = 4, depth: int = 2, **options: Any) -> nn.Module:
        sizes = {"img_size": 8, "patch_size": 4, "num_classes": 3, "init_values": 0.1}
        sizes |= {"embed_dim": dim, "num_heads": heads, "depth": depth}
        return randomise(VisionTransformer(**(sizes | options)))

    return make


@pytest.fixture
def model_file(tmp_path: Path, make_vit: Callable[..., nn.Module]) -> Path:
    """A file of a model with 16 features and 4 heads, in float16, with metadata."""
    state = make_vit().half().state_dict()
    state["head.bias"] = state["head.bias"].to(torch.bfloat16)
    path = tmp_path / "vit.safetensors"
    save_file(state, path, metadata={"format": "pt", "title": "Ä tiny\nmodel"})
    return path
