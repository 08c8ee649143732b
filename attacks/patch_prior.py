# SPDX-License-Identifier: Apache-2.0
"""Patches of auxiliary images as Gaussians, and the edge at cut 0 as a linear map of them.

At cut 0 the token at place s is z = W x + b + p_s, for patch x, patch embedding (W, b) and position
embedding p_s. With x ~ N(mu_s, Sigma) all is linear algebra: the likelihood of a token at each
place, and the best linear guess of its patch. Shapes: n places, P = 3 p^2 values of a patch, D
features.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attacks.simulation import simulate
from attacks.view import View
from clients.augment import normalise
from split import Edge, derive_seed
from split.patches import unfold_patches

__all__ = ["LinearEdge", "PatchPrior", "linear_edge"]

RIDGE = 1e-9
"""Relative to the mean variance of a value: only keeps matrices invertible."""


@dataclass(frozen=True)
class LinearEdge:
    """``weight`` [D, P] and ``offset`` [n, D] (bias and position embedding), in float64."""

    weight: Tensor
    offset: Tensor


def linear_edge(edge: Edge) -> LinearEdge:
    """The linear map of an edge without blocks."""
    vit = edge.vit
    projection = vit.patch_embed.proj
    weight = projection.weight.detach().double().flatten(1)
    bias = torch.zeros(len(weight)) if projection.bias is None else projection.bias.detach()
    places = edge.grid[0] * edge.grid[1]
    offset = bias.double().expand(places, -1)
    if vit.pos_embed is not None:
        offset = offset + vit.pos_embed.detach().double()[0, -places:]
    return LinearEdge(weight, offset)


class PatchPrior:
    """Gaussian statistics of patches and of what the defence makes of them.

    Parameters
    ----------
    view : View
        With the grants ``auxiliary``, ``edge`` and ``defence``; cut 0.
    rows : NDArray
        Auxiliary images to learn from.
    """

    def __init__(self, view: View, rows: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> None:
        images, prefix = view.auxiliary.images[rows], view.geometry.prefix
        self.map = linear_edge(view.edge)
        patches = unfold_patches(normalise(images), view.geometry.patch_size).double()
        tokens = simulate(view, images, derive_seed(0, "patch-prior")).double()
        self.prefix_tokens, sent = tokens[:, :prefix].mean(dim=0), tokens[:, prefix:]
        # A patch swapped in from elsewhere (batch shuffle) tells nothing of this place; what is
        # not explained linearly becomes noise.
        self.mean_patch, self.mean_token = patches.mean(dim=0), sent.mean(dim=0)
        x = (patches - self.mean_patch).flatten(0, 1)
        z = (sent - self.mean_token).flatten(0, 1)
        self.token_covariance = _regular(z.T @ z / len(z))
        self.cross_covariance = x.T @ z / len(x)

    def inverse(self, tokens_BnD: Tensor) -> Tensor:
        """Patches [B, n, P] by the pseudo-inverse of W, as if there were no defence."""
        pseudo: Tensor = torch.linalg.pinv(self.map.weight)
        return (tokens_BnD.double() - self.map.offset) @ pseudo.T

    def posterior(self, tokens_BnD: Tensor) -> Tensor:
        """The best linear guess of the undefended patches [B, n, P], by the statistics."""
        gain = torch.linalg.solve(self.token_covariance, self.cross_covariance.T)
        guess: Tensor = self.mean_patch + (tokens_BnD.double() - self.mean_token) @ gain
        return guess

    def place_logits(self, tokens_BnD: Tensor) -> Tensor:
        """Log likelihood [B, n, n] of each token at each place, up to a constant."""
        lower = torch.linalg.cholesky(self.token_covariance)
        whiten = torch.linalg.solve_triangular(
            lower, torch.eye(len(lower), dtype=lower.dtype), upper=False
        )
        tokens, means = tokens_BnD.double() @ whiten.T, self.mean_token @ whiten.T
        distances: Tensor = torch.cdist(tokens, means.expand(len(tokens), -1, -1))
        return -0.5 * distances.square()


def _regular(covariance: Tensor) -> Tensor:
    regular = covariance.clone()
    regular.diagonal().add_(RIDGE * covariance.diagonal().mean())
    return regular
