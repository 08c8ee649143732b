# SPDX-License-Identifier: Apache-2.0
"""A compact ViT-Adapter for dense prediction, cut into client, trunk and client.

After Chen et al., "Vision Transformer Adapter for Dense Predictions", ICLR 2023. A spatial prior of
convolutions gives features at three scales; between groups of ViT blocks an injector brings them to
the tokens (tokens attend to features) and an extractor brings the tokens back (features attend to
tokens, then an MLP). Convolutions and positions stay on the client, so what the trunk gets are two
sets of vectors, tokens and spatial features, each of which may be permuted.

Two things differ from the original, since both read features by their place: attention is over all
features in place of deformable attention around a point, and the extractor's MLP has no depthwise
convolution. `convolution=True` puts the latter back, on a grid as the features are in; under a row
permutation of the features it breaks, which is the negative control.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from equivariance.rules import RULES, Axis, Rule
from equivariance.rules.rule import AFFINE, in_block

__all__ = ["ADAPTER_RULES", "AdapterTrunk", "ViTAdapter"]

_MOVES = r"(?:injector|extractor)\."
_ATTENTION = _MOVES + r"attention\."

ADAPTER_RULES: tuple[Rule, ...] = (
    in_block(_ATTENTION + r"(?:query|key|value)\.weight", Axis.INNER, Axis.STREAM),
    in_block(_ATTENTION + r"(?:query|key|value)\.bias", Axis.INNER),
    in_block(_ATTENTION + r"output\.weight", Axis.STREAM, Axis.INNER),
    in_block(_ATTENTION + r"output\.bias", Axis.STREAM),
    in_block(_MOVES + r"(?:norm_query|norm_source|norm_mlp)" + AFFINE, Axis.STREAM),
    in_block(_MOVES + r"gamma", Axis.STREAM),
    in_block(r"extractor\.fc1\.weight", Axis.KEEP, Axis.STREAM),
    in_block(r"extractor\.fc1\.bias", Axis.KEEP),
    in_block(r"extractor\.depthwise\.weight", *(Axis.KEEP,) * 4),
    in_block(r"extractor\.depthwise\.bias", Axis.KEEP),
    in_block(r"extractor\.fc2\.weight", Axis.STREAM, Axis.KEEP),
    in_block(r"extractor\.fc2\.bias", Axis.STREAM),
    *RULES["timm-vit"],
)
"""Rules for `AdapterTrunk`. Tokens and spatial features share one column permutation."""


class CrossAttention(nn.Module):
    """Multihead attention of one set of vectors to another, of equal width."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(dim, dim) for _ in range(3))
        self.output = nn.Linear(dim, dim)

    def forward(self, x_BND: Tensor, y_BMD: Tensor) -> Tensor:
        """Return [B, N, D]."""
        query, key, value = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in (self.query(x_BND), self.key(y_BMD), self.value(y_BMD))
        )
        found = functional.scaled_dot_product_attention(query, key, value)
        result: Tensor = self.output(found.transpose(1, 2).flatten(2))
        return result


class Injector(nn.Module):
    """Add to the tokens what they find among the spatial features, scaled by `gamma`."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.norm_query, self.norm_source = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = CrossAttention(dim, heads)
        # The original starts at zero; so would every test of an untrained injector.
        self.gamma = nn.Parameter(torch.full((dim,), 0.1))

    def forward(self, tokens_BND: Tensor, features_BMD: Tensor) -> Tensor:
        """Return the tokens, [B, N, D]."""
        found = self.attention(self.norm_query(tokens_BND), self.norm_source(features_BMD))
        result: Tensor = tokens_BND + self.gamma * found
        return result


class Extractor(nn.Module):
    """Add to the spatial features what they find among the tokens, then an MLP.

    Parameters
    ----------
    dim, heads : int
        Width and attention heads.
    grids : sequence of (int, int), optional
        Sizes of the features' grids: the MLP has a depthwise convolution over each.
    """

    def __init__(
        self, dim: int, heads: int, grids: Sequence[tuple[int, int]] | None = None
    ) -> None:
        super().__init__()
        self.norm_query, self.norm_source = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = CrossAttention(dim, heads)
        self.norm_mlp = nn.LayerNorm(dim)
        self.fc1, self.fc2 = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.grids = grids
        if grids is not None:
            self.depthwise = nn.Conv2d(dim, dim, 3, padding=1, groups=dim)

    def forward(self, features_BMD: Tensor, tokens_BND: Tensor) -> Tensor:
        """Return the features, [B, M, D]."""
        found = self.attention(self.norm_query(features_BMD), self.norm_source(tokens_BND))
        features_BMD = features_BMD + found
        hidden = self.fc1(self.norm_mlp(features_BMD))
        if self.grids is not None:
            maps = (self.depthwise(level) for level in split_levels(hidden, self.grids))
            hidden = join_levels(maps)
        result: Tensor = features_BMD + self.fc2(functional.gelu(hidden))
        return result


class Stage(nn.Module):
    """Injector, a group of ViT blocks, extractor."""

    def __init__(
        self, blocks: Sequence[nn.Module], injector: Injector, extractor: Extractor
    ) -> None:
        super().__init__()
        self.injector, self.extractor = injector, extractor
        self.blocks = nn.ModuleList(blocks)

    def forward(self, tokens_BND: Tensor, features_BMD: Tensor) -> tuple[Tensor, Tensor]:
        """Return tokens and features."""
        tokens_BND = self.injector(tokens_BND, features_BMD)
        for block in self.blocks:
            tokens_BND = block(tokens_BND)
        return tokens_BND, self.extractor(features_BMD, tokens_BND)


class AdapterTrunk(nn.Module):
    """What runs on the server: stages over tokens and spatial features."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        super().__init__()
        self.stages = nn.ModuleList(stages)

    def forward(self, tokens_BND: Tensor, features_BMD: Tensor) -> tuple[Tensor, Tensor]:
        """Return tokens and features, each shaped as it came."""
        for stage in self.stages:
            tokens_BND, features_BMD = stage(tokens_BND, features_BMD)
        return tokens_BND, features_BMD


class SpatialPrior(nn.Module):
    """Convolutions to features at half, equal and twice the stride of the ViT's patches."""

    def __init__(self, dim: int, stride: int) -> None:
        super().__init__()
        first = max(stride // 2, 1)
        self.stem = nn.Sequential(
            nn.Conv2d(3, dim, 3, padding=1), nn.ReLU(), nn.Conv2d(dim, dim, first, stride=first)
        )
        self.down = nn.ModuleList([nn.Conv2d(dim, dim, 3, stride=2, padding=1) for _ in range(2)])
        self.level = nn.Parameter(0.02 * torch.randn(3, dim))

    def forward(self, x: Tensor) -> list[Tensor]:
        """Return three maps [B, D, h, w]."""
        maps = [self.stem(x)]
        for convolution in self.down:
            maps.append(convolution(functional.relu(maps[-1])))
        return [m + level[:, None, None] for m, level in zip(maps, self.level, strict=True)]


class ViTAdapter(nn.Module):
    """From images [B, 3, H, W] to class scores of every pixel, [B, classes, H, W].

    Parameters
    ----------
    vit : VisionTransformer
        A timm model: its embedding, positions and blocks are taken over.
    classes, stages, heads : int
        Classes; groups into which the blocks are cut, each between an injector and an extractor;
        attention heads of those.
    convolution : bool
        The negative control: see the module.
    """

    def __init__(
        self, vit: Any, *, classes: int, stages: int, heads: int, convolution: bool = False
    ) -> None:
        super().__init__()
        dim, stride = vit.embed_dim, vit.patch_embed.patch_size[0]
        blocks = list(vit.blocks)
        side = vit.patch_embed.img_size[0]
        fine = side // max(stride // 2, 1)
        sides = (fine, -(-fine // 2), -(-fine // 4))
        grids = [(s, s) for s in sides] if convolution else None
        # Only the embedding is used; what stayed without use would have no gradient.
        vit.blocks, vit.attn_pool = nn.Sequential(), None
        vit.norm, vit.fc_norm, vit.head = nn.Identity(), nn.Identity(), nn.Identity()
        self.embedding = vit
        self.prior = SpatialPrior(dim, stride)
        cuts = [len(blocks) * i // stages for i in range(stages + 1)]
        self.trunk = AdapterTrunk(
            [
                Stage(blocks[a:b], Injector(dim, heads), Extractor(dim, heads, grids))
                for a, b in pairwise(cuts)
            ]
        )
        self.norm = nn.GroupNorm(1, dim)
        self.head = nn.Conv2d(dim, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return class scores, [B, classes, H, W]."""
        tokens_BND = self.embed(x)
        maps = self.prior(x)
        tokens_BND, features_BMD = self.trunk(tokens_BND, join_levels(maps))
        return self.predict(tokens_BND, features_BMD, maps, (x.shape[-2], x.shape[-1]))

    def embed(self, x: Tensor) -> Tensor:
        """Return the ViT's tokens with their positions, [B, prefix + N, D]."""
        vit = self.embedding
        tokens: Tensor = vit.norm_pre(vit._pos_embed(vit.patch_embed(x)))
        return tokens

    def predict(
        self,
        tokens_BND: Tensor,
        features_BMD: Tensor,
        maps: Sequence[Tensor],
        size: tuple[int, int],
    ) -> Tensor:
        """Merge the levels and the tokens on the finest grid, classify, and scale up."""
        grids = [(m.shape[-2], m.shape[-1]) for m in maps]
        side = self.embedding.patch_embed.grid_size
        patches = tokens_BND[:, self.embedding.num_prefix_tokens :]
        levels = [*split_levels(features_BMD, grids), *split_levels(patches, [tuple(side)])]
        merged = sum(_resize(level, grids[0]) for level in levels)
        result: Tensor = _resize(self.head(functional.relu(self.norm(merged))), size)
        return result


def join_levels(maps: Any) -> Tensor:
    """Join maps [B, D, h, w] to one sequence [B, M, D]."""
    return torch.cat([m.flatten(2).transpose(1, 2) for m in maps], dim=1)


def split_levels(x_BMD: Tensor, grids: Sequence[tuple[int, int]]) -> list[Tensor]:
    """Undo `join_levels`."""
    parts = torch.split(x_BMD, [h * w for h, w in grids], dim=1)
    return [
        part.transpose(1, 2).reshape(len(part), -1, *grid)
        for part, grid in zip(parts, grids, strict=True)
    ]


def _resize(x: Tensor, size: tuple[int, int]) -> Tensor:
    return functional.interpolate(x, size=size, mode="bilinear", align_corners=False)
