# SPDX-License-Identifier: Apache-2.0
"""One Transformer becomes edge | trunk | tail.

Shapes: B samples, N tokens (prefix tokens first, then patches row by row), D features, K outputs.
"""

import copy
from dataclasses import dataclass

from timm.models import VisionTransformer
from torch import Tensor, nn

from split.model import ModelError, ModelSpec, build_vit, shape_of


class Edge(nn.Module):
    """The client's first part: patch embedding, prefix tokens, positions, the first blocks.

    Parameter names are timm's own, so that state dicts of the three parts join into one of timm.
    """

    def __init__(self, vit: VisionTransformer, cut: int) -> None:
        super().__init__()
        self.prefix: int = vit.num_prefix_tokens
        self.grid: tuple[int, int] = tuple(vit.patch_embed.grid_size)
        blocks = vit.blocks[:cut]
        vit.blocks, vit.norm, vit.fc_norm, vit.head = blocks, *(nn.Identity() for _ in range(3))
        self.vit = vit

    def forward(self, images_BCHW: Tensor) -> Tensor:
        """Tokens ``[B, N, D]`` of normalised images ``[B, 3, H, W]``."""
        vit = self.vit
        x_BND = vit._pos_embed(vit.patch_embed(images_BCHW))
        tokens: Tensor = vit.blocks(vit.norm_pre(x_BND))
        return tokens


class Trunk(nn.Module):
    """The server's part: all blocks after the cut, under their index in the whole model."""

    def __init__(self, vit: VisionTransformer, cut: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleDict(
            {str(index): block for index, block in enumerate(vit.blocks) if index >= cut}
        )
        self.prefix: int = vit.num_prefix_tokens
        self.tokens: int = vit.num_prefix_tokens + vit.patch_embed.num_patches
        self.dim: int = vit.embed_dim
        self.heads: int = vit.blocks[0].attn.num_heads

    def forward(self, x_BND: Tensor) -> Tensor:
        """Hidden ``[B, N, D]`` of smashed data ``[B, N, D]``."""
        for block in self.blocks.values():
            x_BND = block(x_BND)
        return x_BND


class Tail(nn.Module):
    """The client's last part: pooling, final norm, head.

    Norm follows the pooling: for CLS that is the same as before it, for the mean it is timm's
    ``fc_norm``. So the trunk may pool in the client's stead and return one row a sample.
    """

    def __init__(self, vit: VisionTransformer, pool: str) -> None:
        super().__init__()
        self.pool, self.prefix = pool, vit.num_prefix_tokens
        self.norm = vit.norm
        self.head_drop = vit.head_drop
        self.head = vit.head

    def forward(self, hidden: Tensor) -> Tensor:
        """Logits ``[B, K]`` of hidden ``[B, N, D]``, or of hidden that is pooled, ``[B, D]``."""
        pooled_BD = hidden if hidden.ndim == 2 else pool_tokens(hidden, self.pool, self.prefix)
        logits: Tensor = self.head(self.head_drop(self.norm(pooled_BD)))
        return logits


def pool_tokens(hidden_BND: Tensor, pool: str, prefix: int) -> Tensor:
    """One row a sample, ``[B, D]``: CLS (``"cls"``) or the mean of patch tokens (``"mean"``)."""
    return hidden_BND[:, 0] if pool == "cls" else hidden_BND[:, prefix:].mean(dim=1)


@dataclass
class SplitTransformer:
    """The three parts of one model; :meth:`forward` is the unsplit model, the tests' oracle."""

    edge: Edge
    trunk: Trunk
    tail: Tail

    def forward(self, images_BCHW: Tensor) -> Tensor:
        """Logits ``[B, K]`` in one process, with nothing on any wire."""
        logits: Tensor = self.tail(self.trunk(self.edge(images_BCHW)))
        return logits

    def state_dict(self) -> dict[str, Tensor]:
        """Weights of the whole model under timm's names."""
        edge = {name.removeprefix("vit."): t for name, t in self.edge.state_dict().items()}
        return {**edge, **self.trunk.state_dict(), **self.tail.state_dict()}


def cut_vit(vit: VisionTransformer, *, cut: int, pool: str) -> SplitTransformer:
    """Cut ``vit`` after its first ``cut`` blocks. The parts take over its modules.

    Raises
    ------
    ModelError
        If ``cut`` is not in 0 .. depth - 1, or ``pool = "cls"`` and the model has no CLS token.
    """
    depth = len(vit.blocks)
    if not 0 <= cut < depth:
        raise ModelError(f"cut = {cut}: must be 0 .. {depth - 1}")
    if pool == "cls" and not vit.has_class_token:
        raise ModelError('pool = "cls": this model has no CLS token; allowed is "mean"')
    trunk, tail = Trunk(vit, cut), Tail(vit, pool)
    return SplitTransformer(Edge(vit, cut), trunk, tail)


def build_split(spec: ModelSpec, cut: int) -> SplitTransformer:
    """Build the model of ``spec`` and cut it. Same spec, same weights, on any machine."""
    return cut_vit(build_vit(spec), cut=cut, pool=spec.pool)


def empty_split(spec: ModelSpec, cut: int) -> SplitTransformer:
    """The same parts on the meta device: shapes and names, to be filled by ``load_state_dict``."""
    return cut_vit(copy.deepcopy(shape_of(spec)), cut=cut, pool=spec.pool)
