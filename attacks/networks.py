# SPDX-License-Identifier: Apache-2.0
"""Networks of the attackers. Tokens come in standardised: see :class:`Standardise`."""

import torch
from timm.models.vision_transformer import Block
from torch import Tensor, nn

from attacks.assignment import assign
from attacks.view import Geometry
from split.patches import fold_patches, unfold_patches

__all__ = ["Standardise", "TokenClassifier", "TokenDecoder", "TokenPlacer"]

WIDTH, DEPTH, HEAD = 128, 3, 32
"""Of the attackers' Transformers, unless the smashed data are wider."""


class Standardise(nn.Module):
    """Each feature less its mean, over its deviation, both measured once on auxiliary tokens."""

    mean: Tensor
    scale: Tensor

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("scale", torch.ones(dim))

    def measure(self, tokens_BND: Tensor) -> None:
        """Take mean and deviation from these tokens."""
        flat = tokens_BND.flatten(0, -2)
        self.mean.copy_(flat.mean(dim=0))
        self.scale.copy_(flat.std(dim=0).clamp_min(1e-6))

    def forward(self, tokens: Tensor) -> Tensor:
        """``[..., D]`` to the same."""
        result: Tensor = (tokens - self.mean) / self.scale
        return result


def _blocks(width: int, depth: int) -> nn.Sequential:
    return nn.Sequential(*(Block(width, width // HEAD) for _ in range(depth)))


def _width(geometry: Geometry) -> int:
    return max(WIDTH, -(-geometry.dim // HEAD) * HEAD)


class TokenDecoder(nn.Module):
    """From tokens to the image: a ViT with positions for the received order, and a linear path.

    The linear path, token to patch, is first set by :meth:`solve`: it finds which token goes with
    which patch (as received, unless a lasting permutation moved all samples' tokens alike), and
    the least squares between them. At cut 0 without noise that is the inverse of the patch
    embedding already. The ViT learns what is missing.
    """

    route: Tensor

    def __init__(self, geometry: Geometry, depth: int = DEPTH) -> None:
        super().__init__()
        width, values = _width(geometry), 3 * geometry.patch_size**2
        self.geometry = geometry
        self.standardise = Standardise(geometry.dim)
        self.embed = nn.Linear(geometry.dim, width)
        self.position = nn.Parameter(0.02 * torch.randn(geometry.tokens, width))
        self.blocks = _blocks(width, depth)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, values)
        self.linear = nn.Linear(geometry.dim, values, bias=False)
        self.mean_patch = nn.Parameter(torch.zeros(geometry.patches, values))
        self.register_buffer("route", torch.arange(geometry.prefix, geometry.tokens))

    @torch.no_grad()
    def solve(self, tokens_BND: Tensor, images_BCHW: Tensor) -> None:
        """Route, then least squares of patches on their tokens, and a quiet start of the ViT."""
        self.standardise.measure(tokens_BND)
        tokens = self.standardise(tokens_BND)
        patches = unfold_patches(images_BCHW, self.geometry.patch_size)
        self.route.copy_(_route(tokens, patches))
        tokens = tokens[:, self.route]
        mean_token, mean_patch = tokens.mean(dim=0), patches.mean(dim=0)
        x = (tokens - mean_token).flatten(0, 1).double()
        y = (patches - mean_patch).flatten(0, 1).double()
        gram = x.T @ x
        gram.diagonal().add_(1e-6 * gram.diagonal().mean() + 1e-12)
        solution = torch.linalg.solve(gram, x.T @ y).float()
        self.linear.weight.copy_(solution.T)
        self.mean_patch.copy_(mean_patch - mean_token @ solution)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, tokens_BND: Tensor) -> Tensor:
        """Images ``[B, 3, H, W]`` around [-1, 1] of tokens ``[B, N, D]``."""
        tokens = self.standardise(tokens_BND)
        deep = self.head(self.norm(self.blocks(self.embed(tokens) + self.position)))
        patches = (self.linear(tokens) + deep)[:, self.route] + self.mean_patch
        side = self.geometry.image_size
        return fold_patches(patches, self.geometry.patch_size, side, side)


SKETCH = 16


def _route(tokens_BND: Tensor, patches_BnP: Tensor) -> Tensor:
    """For each patch the token [n] that varies with it over images: the best assignment by the
    squared canonical correlations of sketches of both."""
    left, right = _sketch(tokens_BND), _sketch(patches_BnP)
    cross = torch.einsum("bik,bsl->ikls", left, right) / len(left)
    likeness = cross.square().sum(dim=(1, 2)).T
    return assign(-likeness)


def _sketch(x_BNF: Tensor) -> Tensor:
    """A few random directions of each place, whitened over the images, ``[B, N, k]``."""
    batch, _, features = x_BNF.shape
    size = min(SKETCH, features, max(1, batch // 4))
    generator = torch.Generator().manual_seed(0)
    directions = torch.randn(features, size, generator=generator, dtype=torch.float64)
    sketch = (x_BNF.double() @ directions.to(x_BNF.device)).transpose(0, 1)
    sketch = sketch - sketch.mean(dim=1, keepdim=True)
    covariance = sketch.transpose(1, 2) @ sketch / batch
    spread = covariance.diagonal(dim1=1, dim2=2).mean(dim=1)[:, None, None]
    covariance = covariance + (1e-6 * spread + 1e-12) * torch.eye(size, device=x_BNF.device)
    lower = torch.linalg.cholesky(covariance)
    white: Tensor = torch.linalg.solve_triangular(lower, sketch.transpose(1, 2), upper=False)
    return white.permute(2, 0, 1)


class TokenPlacer(nn.Module):
    """For each token the token of the edge it may be: logits over all N places.

    ``attend = False`` looks at each token alone; ``True`` at all tokens of the image as a set,
    without positions, so it commutes with any permutation.
    """

    def __init__(self, geometry: Geometry, *, attend: bool, depth: int = DEPTH) -> None:
        super().__init__()
        width = _width(geometry)
        self.standardise = Standardise(geometry.dim)
        hidden = 4 * width
        self.embed = nn.Linear(geometry.dim, width)
        self.body: nn.Module = (
            _blocks(width, depth)
            if attend
            else nn.Sequential(
                nn.GELU(), nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width)
            )
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, geometry.tokens)

    def forward(self, tokens_BND: Tensor) -> Tensor:
        """Logits ``[B, N, N]``."""
        hidden = self.body(self.embed(self.standardise(tokens_BND)))
        logits: Tensor = self.head(self.norm(hidden))
        return logits


class TokenClassifier(nn.Module):
    """Attributes of a set of tokens in whatever order: attention without positions, and a mean."""

    def __init__(self, geometry: Geometry, depth: int = 2) -> None:
        super().__init__()
        width = _width(geometry)
        self.standardise = Standardise(geometry.dim)
        self.embed = nn.Linear(geometry.dim, width)
        self.blocks = _blocks(width, depth)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, geometry.outputs)

    def forward(self, tokens_BND: Tensor) -> Tensor:
        """Logits ``[B, K]``."""
        hidden = self.blocks(self.embed(self.standardise(tokens_BND)))
        logits: Tensor = self.head(self.norm(hidden.mean(dim=1)))
        return logits
