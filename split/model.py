# SPDX-License-Identifier: Apache-2.0
"""A timm VisionTransformer by name, with overrides, random or pretrained."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import timm
import torch
from timm.models import VisionTransformer

from config import Problem, RunConfig
from split.seeds import derive_seed, seeded

NUM_ATTRIBUTES = 40


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """What fixes a model: its shape, and where its first weights come from.

    Parameters
    ----------
    name : str
        A model of timm built on ``VisionTransformer``.
    image_size : int
        Side of the square input in pixels.
    patch_size, dim, depth, heads : int
        Overrides; 0 keeps the model's own.
    outputs : int
        Number of logits.
    pool : str
        ``"cls"`` or ``"mean"`` (over patch tokens).
    position : bool
        Whether the edge adds the learned position embedding.
    drop_path : float
        Stochastic depth rate of the last block, in [0, 1).
    weights : str
        ``""`` random from ``seed``, ``"hub"`` timm's pretrained weights, else a local file
        (``.safetensors`` or a torch checkpoint); positions are resampled to the image size.
    seed : int
        Seed of the run, for random weights.
    """

    name: str
    image_size: int
    patch_size: int = 0
    dim: int = 0
    depth: int = 0
    heads: int = 0
    outputs: int = NUM_ATTRIBUTES
    pool: str = "cls"
    position: bool = True
    drop_path: float = 0.0
    weights: str = ""
    seed: int = 0

    @classmethod
    def of(cls, config: RunConfig) -> "ModelSpec":
        """The model that a run's configuration asks for."""
        return cls(
            name=config.model,
            image_size=config.image_size,
            patch_size=config.patch_size,
            dim=config.dim,
            depth=config.depth,
            heads=config.heads,
            pool=config.pool,
            position=config.edge_position == "learned",
            drop_path=config.drop_path,
            weights=config.weights,
            seed=config.seed,
        )


class ModelError(ValueError):
    """A model that cannot be built or cut; the text says what is allowed."""


def build_vit(spec: ModelSpec) -> VisionTransformer:
    """Build the whole model, with ``spec.outputs`` logits.

    The final norm is always built before the pooling (timm's ``fc_norm=False``), where pretrained
    weights have it; :func:`split.parts.cut_vit` applies it after pooling.

    Raises
    ------
    ModelError
        If timm does not know the model, it is no ``VisionTransformer``, an override does not fit
        it, or the weights cannot be read.
    """
    if not timm.is_model(spec.name):
        raise ModelError(
            f"{spec.name!r} is not a model of timm; try timm.list_models('vit_*') for names"
        )
    overrides: dict[str, object] = {
        "embed_dim": spec.dim,
        "depth": spec.depth,
        "num_heads": spec.heads,
        "patch_size": spec.patch_size,
    }
    arguments = {key: value for key, value in overrides.items() if value}
    if spec.weights and spec.weights != "hub":
        if not Path(spec.weights).is_file():
            raise ModelError(f"weights {spec.weights!r}: no such file")
        arguments["pretrained_cfg_overlay"] = _from_file(spec)
    try:
        with seeded(derive_seed(spec.seed, "weights")):
            vit = timm.create_model(
                spec.name,
                pretrained=bool(spec.weights),
                img_size=spec.image_size,
                num_classes=spec.outputs,
                global_pool="token" if spec.pool == "cls" else "avg",
                fc_norm=False,
                drop_path_rate=spec.drop_path,
                **arguments,
            )
    except (TypeError, AssertionError, RuntimeError, ValueError) as error:
        raise ModelError(f"timm cannot build {spec.name!r} with {arguments}: {error}") from error
    if type(vit) is not VisionTransformer or vit.attn_pool is not None:
        raise ModelError(
            f"{spec.name!r} is a {type(vit).__name__}; allowed are timm VisionTransformers "
            "that pool by CLS or mean (such as vit_*, deit_*, *_dinov2)"
        )
    if not spec.position:
        vit.pos_embed = None
    return vit


def _from_file(spec: ModelSpec) -> dict[str, object]:
    """How timm loads a local file: with its head if that has as many outputs as asked for."""
    try:
        state = timm.models.load_state_dict(spec.weights)
    except Exception as error:
        raise ModelError(f"weights {spec.weights!r}: cannot be read: {error}") from error
    head = state.get("head.weight")
    fits = head is not None and len(head) == spec.outputs
    return {"file": spec.weights, **({"num_classes": spec.outputs} if fits else {})}


@lru_cache(maxsize=8)
def shape_of(spec: ModelSpec) -> VisionTransformer:
    """The model of ``spec`` on the meta device: shapes and names, no weights. Not to be changed."""
    with torch.device("meta"):
        return build_vit(replace(spec, weights=""))


def check_model(config: RunConfig) -> Iterator[Problem]:
    """Problems of the model keys that only timm can tell: a rule for ``parse_run_config``."""
    spec = ModelSpec.of(config)
    if spec.weights not in ("", "hub") and not Path(spec.weights).is_file():
        yield Problem("weights", spec.weights, 'no such file; allowed is "", "hub" or a file')
    try:
        vit = shape_of(spec)
    except ModelError as error:
        yield Problem("model", spec.name, str(error))
        return
    patch, depth = vit.patch_embed.patch_size[0], len(vit.blocks)
    if not config.patch_size and config.image_size % patch:
        yield Problem("image-size", config.image_size, f"must be a multiple of the patch, {patch}")
    if not config.depth and config.cut >= depth:
        yield Problem("cut", config.cut, f"must be 0 .. {depth - 1} (depth of {spec.name})")
