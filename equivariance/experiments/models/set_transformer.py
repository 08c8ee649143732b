# SPDX-License-Identifier: Apache-2.0
"""A Set Transformer: attention among the elements of a set, then pooling by multihead attention.

After Lee et al., "Set Transformer", ICML 2019 (SAB, PMA). The attention block is theirs: the
projected query is added to what attention finds, and a ReLU layer to that.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["AttentionBlock", "SetTransformer"]


class AttentionBlock(nn.Module):
    """Multihead attention block MAB(X, Y): elements of X attend to those of Y."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(dim, dim) for _ in range(3))
        self.output = nn.Linear(dim, dim)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)

    def forward(self, x_BND: Tensor, y_BMD: Tensor) -> Tensor:
        """Return [B, N, D]."""
        query, key, value = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in (self.query(x_BND), self.key(y_BMD), self.value(y_BMD))
        )
        found = functional.scaled_dot_product_attention(query, key, value)
        h_BND = self.norm1((query + found).transpose(1, 2).flatten(2))
        result: Tensor = self.norm2(h_BND + functional.relu(self.output(h_BND)))
        return result


class SetTransformer(nn.Module):
    """From sets [B, N, features] to one vector [B, outputs].

    Parameters
    ----------
    features, dim, heads, seeds, outputs : int
        Features of an element; width; attention heads; seed vectors that pool; results.
    """

    def __init__(self, features: int, dim: int, heads: int, seeds: int, outputs: int) -> None:
        super().__init__()
        self.embed = nn.Linear(features, dim)
        self.encoder = nn.ModuleList([AttentionBlock(dim, heads) for _ in range(2)])
        self.seeds = nn.Parameter(torch.randn(seeds, dim) / dim**0.5)
        self.pool = AttentionBlock(dim, heads)
        self.head = nn.Linear(seeds * dim, outputs)

    def encode(self, x_BNF: Tensor) -> Tensor:
        """Return the elements as they reach the pooling, [B, N, D]."""
        z_BND: Tensor = self.embed(x_BNF)
        for block in self.encoder:
            z_BND = block(z_BND, z_BND)
        return z_BND

    def pooled(self, z_BND: Tensor) -> Tensor:
        """Pool by multihead attention (PMA): [B, seeds, D]."""
        found: Tensor = self.pool(self.seeds.expand(z_BND.shape[0], -1, -1), z_BND)
        return found

    def forward(self, x_BNF: Tensor) -> Tensor:
        """Return [B, outputs]."""
        result: Tensor = self.head(self.pooled(self.encode(x_BNF)).flatten(1))
        return result
