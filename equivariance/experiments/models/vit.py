# SPDX-License-Identifier: Apache-2.0
"""Vision Transformers of timm as subjects of experiments."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import Field
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn
from torch.nn import functional

from equivariance.experiments.data.images import ImageData, ImageOptions, normalised
from equivariance.experiments.errors import ExperimentError
from equivariance.experiments.examples import Examples, sequential
from equivariance.experiments.subject import Subject
from equivariance.experiments.training import TrainingOptions, train
from equivariance.heads import attention_heads
from equivariance.locking import LockError, Stack

__all__ = ["ViTOptions", "build_vit", "fit_vit", "for_model"]


class ViTOptions(ImageOptions, TrainingOptions):
    """Images, a Vision Transformer, and how it is trained."""

    model: str = Field(
        "", description="Name of a timm VisionTransformer; empty: a small one of the sizes below."
    )
    weights: str = Field(
        "", description="Weights of `model`: a .safetensors file, or hub; empty: random."
    )
    patch_size: int = Field(8, ge=1, description="Side of a patch in pixels, if model is empty.")
    dim: int = Field(48, ge=4, description="Features of a token, if model is empty.")
    depth: int = Field(3, ge=1, description="Blocks, if model is empty.")
    heads: int = Field(4, ge=1, description="Attention heads, if model is empty.")
    inner: Literal["headwise", "none"] = Field(
        "headwise", description="none: leave attention's inside, needed with norms of q and k."
    )


def build_vit(options: ViTOptions, classes: int) -> Subject:
    """Build a model with random or given weights and a fresh head, in evaluation mode.

    Raises
    ------
    ExperimentError
        If timm has no such VisionTransformer, sizes do not fit, or weights do not.
    """
    # The global generator, which timm's initialisation uses, is seeded here and then restored.
    with torch.random.fork_rng():
        torch.manual_seed(options.seed)
        model = _named(options, classes) if options.model else _small(options, classes)
    if options.weights and options.weights != "hub":
        _load(model, Path(options.weights).expanduser())
    model.to(options.device, options.torch_dtype).eval()
    return Subject(model, _stack(model, options))


def for_model(data: ImageData, subject: Subject, options: ViTOptions) -> ImageData:
    """Return the data with the normalisation that the model's weights were trained with."""
    settings = getattr(subject.model, "pretrained_cfg", None) or {}
    if not options.model or "mean" not in settings:
        return data
    mean, deviation = (
        torch.tensor(settings[key], dtype=options.torch_dtype, device=options.device).view(3, 1, 1)
        for key in ("mean", "std")
    )
    prepare = normalised(options.torch_dtype, mean=mean, deviation=deviation)
    return ImageData(
        replace(data.train, prepare=prepare), replace(data.test, prepare=prepare), data.classes
    )


def fit_vit(
    subject: Subject, examples: Examples, options: ViTOptions, *, fit: Literal["all", "probe"]
) -> None:
    """Train the whole model, or only its head on features computed once (a linear probe)."""
    if fit == "all":
        train(subject.model, examples, options)
    else:
        _probe(subject.model, examples, options)


def _small(options: ViTOptions, classes: int) -> Any:
    sizes = {"dim": options.heads, "image_size": options.patch_size}
    for name, part in sizes.items():
        if getattr(options, name) % part:
            raise ExperimentError(
                f"{name.replace('_', '-')} = {getattr(options, name)}: must be a multiple of {part}"
            )
    return VisionTransformer(
        img_size=options.image_size,
        patch_size=options.patch_size,
        embed_dim=options.dim,
        depth=options.depth,
        num_heads=options.heads,
        num_classes=classes,
    )


def _named(options: ViTOptions, classes: int) -> Any:
    import timm

    try:
        model = timm.create_model(
            options.model,
            pretrained=options.weights == "hub",
            img_size=options.image_size,
            num_classes=classes,
        )
    except Exception as error:  # timm, the hub and torch each raise their own
        raise ExperimentError(f"model = {options.model}: timm cannot build it: {error}") from error
    if not isinstance(model, VisionTransformer):
        raise ExperimentError(f"model = {options.model}: is no timm VisionTransformer")
    return model


def _stack(model: Any, options: ViTOptions) -> Stack:
    heads = set(attention_heads(model.blocks).values())
    if len(heads) != 1:
        kind = type(model.blocks[0]).__name__
        raise ExperimentError(f"model = {options.model}: its blocks are {kind}: no rule for them")
    stack = Stack(
        architecture="timm-vit", dim=model.embed_dim, heads=heads.pop(), inner=options.inner
    )
    shapes = {name: tuple(p.shape) for name, p in model.blocks[:1].named_parameters()}
    try:
        stack.check_shapes(shapes, torch.arange(stack.dim))
    except LockError as error:
        raise ExperimentError(f"model = {options.model}: {error}") from error
    return stack


def _load(model: Any, path: Path) -> None:
    """Load all but the head, with positions resampled to the model's grid."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file
    from timm.models.vision_transformer import checkpoint_filter_fn

    try:
        state = checkpoint_filter_fn(load_file(path), model)
        state = {name: tensor for name, tensor in state.items() if not name.startswith("head.")}
        missing, unexpected = model.load_state_dict(state, strict=False)
    except (OSError, SafetensorError, RuntimeError) as error:
        raise ExperimentError(f"weights = {path}: cannot be loaded: {error}") from error
    faults = [*unexpected, *(name for name in missing if not name.startswith("head."))]
    if faults:
        raise ExperimentError(f"weights = {path}: do not fit the model: {', '.join(faults[:5])}")


def _probe(model: Any, examples: Examples, options: ViTOptions) -> None:
    features, labels = _features(model, examples, options)
    head = nn.Linear(features.shape[1], int(model.num_classes), device=features.device)
    head.to(features.dtype)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    # Standardised features, so that one strength of regularisation fits all models.
    mean, deviation = features.mean(0), features.std(0) + 1e-6
    scaled = (features - mean) / deviation
    optimiser = torch.optim.LBFGS(head.parameters(), max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = functional.cross_entropy(head(scaled), labels) + 1e-3 * head.weight.square().sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimiser.step(closure)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        model.head.weight.copy_(head.weight / deviation)
        model.head.bias.copy_(head.bias - (head.weight / deviation) @ mean)


@torch.no_grad()
def _features(model: Any, examples: Examples, options: ViTOptions) -> tuple[Tensor, Tensor]:
    model.eval()
    found = [
        (model.forward_head(model.forward_features(inputs["x"]), pre_logits=True), labels)
        for inputs, labels in sequential(examples, size=64, device=options.device)
    ]
    features, labels = zip(*found, strict=True)
    return torch.cat(features), torch.cat(labels)
