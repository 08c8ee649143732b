# SPDX-License-Identifier: Apache-2.0
"""`vit-adapter`: dense prediction whose trunk holds injectors and extractors around ViT blocks.

ViT tokens and spatial features get row permutations of their own, fresh for every sample, and one
column permutation; every output, and every gradient, stays as it was. The negative control gives
the extractor the depthwise convolution of the original, which sees the features' places.
"""

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from pydantic import Field
from torch import Tensor, nn

from equivariance.column import permute_columns, sample_column_order, unpermute_columns
from equivariance.conjugation import conjugate_, conjugate_state
from equivariance.experiments.data.dense import DenseOptions, load_dense
from equivariance.experiments.data.images import ImageData
from equivariance.experiments.errors import ExperimentError
from equivariance.experiments.examples import Examples, sequential
from equivariance.experiments.models.adapter import ADAPTER_RULES, ViTAdapter
from equivariance.experiments.models.vit import build_vit, for_model
from equivariance.experiments.results import Results
from equivariance.experiments.sandwich import fresh_rows
from equivariance.experiments.training import gradients, train
from equivariance.experiments.twins import forward_tolerance, secret_of
from equivariance.order import invert
from equivariance.row import permute_rows, unpermute_rows

__all__ = ["AdapterOptions", "run"]

# ADE20K with UperNet, in percent: the same for plain, row and column.
PAPER = {"mIoU %": 48.75, "aAcc %": 83.12, "mAcc %": 60.09}
_PREFIX = "trunk."


class AdapterOptions(DenseOptions):
    """`stages` groups of ViT blocks, each between an injector and an extractor."""

    stages: int = Field(2, ge=1, description="Groups of blocks; at most depth.")
    depth: int = Field(2, ge=1, description="Blocks, if model is empty.")
    dim: int = Field(32, ge=4, description="Features of a token, if model is empty.")
    steps: int = Field(150, ge=0, description="Optimiser steps.")
    batch_size: int = Field(16, ge=1, description="Examples of a step.")
    lr: float = Field(4e-3, gt=0, description="Learning rate, falling to zero along a cosine.")


def run(options: AdapterOptions) -> pd.DataFrame:
    """Return the table; scores in percent, over classes that the test split shows."""
    model, heads, data = _model(options)
    train(model, data.train, options)
    order = _column_order(model, heads, options)
    results = Results()
    tolerance = forward_tolerance(options)
    plain = _measure(model, data.test, options)
    plain_gradients = gradients(model, data.train, options)
    for name, score in plain.scores.items():
        results.measured(name, "plain", score, paper=PAPER[name])
    for case in ("row", "column", "row and column"):
        columns = order if "column" in case else None
        twin = model if columns is None else _conjugated(model, heads, columns, options)
        with _permuted(twin, options, rows="row" in case, columns=columns):
            found = _measure(twin, data.test, options)
            found_gradients = gradients(twin, data.train, options)
        found_gradients = _unconjugate(found_gradients, heads, columns, options)
        results.equal("outputs", case, found.outputs, plain.outputs, tolerance=tolerance)
        results.equal("gradients", case, found_gradients, plain_gradients, tolerance=tolerance)
        for name, score in found.scores.items():
            results.equal(
                name,
                case,
                score,
                plain.scores[name],
                tolerance=tolerance if options.dtype == "float64" else 1e-2,
                paper=PAPER[name],
            )
    control, _, _ = _model(options, convolution=True)
    still = _measure(control, data.test, options)
    with _permuted(control, options, rows=True, columns=None):
        moved = _measure(control, data.test, options)
    case = "row, extractor with convolution"
    results.different("outputs", case, moved.outputs, still.outputs)
    return results.frame()


@dataclass(frozen=True)
class DenseMeasured:
    """Scores by name, in percent, and class scores [M, classes, H, W]."""

    scores: Mapping[str, float]
    outputs: Tensor


def _model(
    options: AdapterOptions, *, convolution: bool = False
) -> tuple[ViTAdapter, int, ImageData]:
    data = load_dense(options)
    subject = build_vit(options, data.classes)
    data = for_model(data, subject, options)
    vit: Any = subject.model
    if options.stages > len(vit.blocks):
        raise ExperimentError(f"stages = {options.stages}: at most the {len(vit.blocks)} blocks")
    with torch.random.fork_rng():
        torch.manual_seed(options.seed)
        model = ViTAdapter(
            vit,
            classes=data.classes,
            stages=options.stages,
            heads=subject.stack.heads,
            convolution=convolution,
        )
    return model.to(options.device, options.torch_dtype).eval(), subject.stack.heads, data


def _column_order(model: ViTAdapter, heads: int, options: AdapterOptions) -> Tensor:
    dim = model.head.in_channels
    group = heads if options.inner == "headwise" else 1
    order = sample_column_order(secret_of(options, "columns"), dim=dim, heads=group)
    return order.to(options.device)


def _conjugated(
    model: ViTAdapter, heads: int, order: Tensor, options: AdapterOptions
) -> ViTAdapter:
    twin = copy.deepcopy(model)
    conjugate_(twin.trunk, order, heads=heads, inner=options.inner, rules=ADAPTER_RULES)
    return twin


def _unconjugate(
    named: Mapping[str, Tensor], heads: int, order: Tensor | None, options: AdapterOptions
) -> dict[str, Tensor]:
    if order is None:
        return dict(named)
    trunk = {name: value for name, value in named.items() if name.startswith(_PREFIX)}
    plain = conjugate_state(
        trunk, invert(order), heads=heads, inner=options.inner, rules=ADAPTER_RULES
    )
    return dict(named) | plain


@contextmanager
def _permuted(
    model: ViTAdapter, options: AdapterOptions, *, rows: bool, columns: Tensor | None
) -> Iterator[None]:
    """Permute tokens and spatial features before the trunk, and permute both back behind it."""
    draws = [fresh_rows(secret_of(options, "rows", what)) for what in ("tokens", "features")]
    orders: list[Tensor] = []

    def before(module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        if rows:
            orders[:] = [draw(x) for draw, x in zip(draws, args, strict=True)]
            args = tuple(map(permute_rows, args, orders))
        return tuple(permute_columns(x, columns) for x in args) if columns is not None else args

    def after(
        module: nn.Module, args: tuple[Tensor, ...], output: tuple[Tensor, ...]
    ) -> tuple[Tensor, ...]:
        if columns is not None:
            output = tuple(unpermute_columns(x, columns) for x in output)
        return tuple(map(unpermute_rows, output, orders)) if rows else output

    handles = [
        model.trunk.register_forward_pre_hook(before),
        model.trunk.register_forward_hook(after),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@torch.no_grad()
def _measure(model: nn.Module, examples: Examples, options: AdapterOptions) -> DenseMeasured:
    """Mean intersection over union, accuracy of all pixels, mean accuracy of classes."""
    model.eval()
    outputs, labels = [], []
    for inputs, label in sequential(examples, size=options.batch_size, device=options.device):
        outputs.append(model(**inputs).cpu())
        labels.append(label.cpu())
    found, truth = torch.cat(outputs), torch.cat(labels)
    classes = found.shape[1]
    kept = truth >= 0
    pairs = classes * truth[kept] + found.argmax(1)[kept]
    counts = torch.bincount(pairs, minlength=classes**2).reshape(classes, classes).double()
    right, true, claimed = counts.diagonal(), counts.sum(1), counts.sum(0)
    shown = true > 0
    scores = {
        "mIoU %": (right / (true + claimed - right))[shown].mean(),
        "aAcc %": right.sum() / true.sum(),
        "mAcc %": (right / true)[shown].mean(),
    }
    return DenseMeasured({name: 100 * float(score) for name, score in scores.items()}, found)
