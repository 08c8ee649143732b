# SPDX-License-Identifier: Apache-2.0
"""`cost`: what permuting adds to a training step, by index and by dense matrices.

Operations and memory of a step (forward and backward, gradients of all parameters) are counted
from shapes at the full size, for which nothing is computed. Seconds are those of the permutations
alone: both of them, forward and backward, measured on this machine.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pandas as pd
import torch
from pydantic import Field
from torch import Tensor, nn

from equivariance.column import permute_columns, sample_column_order, unpermute_columns
from equivariance.experiments.dense import dense_columns, dense_rows
from equivariance.experiments.errors import ExperimentError
from equivariance.experiments.measure import count_flops, peak_bytes, seconds
from equivariance.experiments.options import DType, Options
from equivariance.experiments.results import Paper, Results
from equivariance.keys import Secret
from equivariance.row import permute_rows, unpermute_rows
from equivariance.stream import random_permutations

__all__ = ["CostOptions", "permutations", "run"]

Permute = Callable[[Tensor], Tensor]
KINDS = ("row", "column", "row and column")
FORMS = ("index", "dense")
# The paper's step has both permutations, as dense matrices.
PAPER_FLOPS: dict[str, Paper] = {"plain": 100.4, "dense, row and column": 102.1}
PAPER_GIB: dict[str, Paper] = {"plain": 19.3, "dense, row and column": 19.7}


class CostOptions(Options):
    """The paper's model; `dtype` is that of the step."""

    dtype: DType = Field("float32", description="Precision of the step.")
    model: str = Field("vit_base_patch16_224", description="Name of a timm VisionTransformer.")
    batch_size: int = Field(128, ge=1, description="Images of the step whose memory is counted.")
    timed_batch: int = Field(16, ge=1, description="Images of the permutations that are timed.")
    repeat: int = Field(5, ge=1, description="Timed runs, of which the median is taken.")


def run(options: CostOptions) -> pd.DataFrame:
    """Return the table: GFLOPs of an image, GiB of a step, milliseconds of permuting."""
    results = Results()
    model = _shadow(options)
    tokens, dim = model.patch_embed.num_patches + model.num_prefix_tokens, model.embed_dim

    def cost(permute: tuple[Permute, Permute] | None) -> tuple[float, float]:
        side = model.patch_embed.img_size[0]
        shape = (options.batch_size, 3, side, side)
        images = torch.empty(shape, device="meta", dtype=options.torch_dtype)
        model.zero_grad()
        with ExitStack() as stack:
            if permute is not None:
                stack.enter_context(_around(model.blocks, *permute))
            flops, held = _counted(lambda: model(images).sum().backward())
        return flops / options.batch_size / 1e9, held / 2**30

    cases = [(f"{form}, {kind}", form, kind) for form in FORMS for kind in KINDS]
    plain_flops, plain_gib = cost(None)
    found = {
        case: cost(permutations(form, kind, tokens, dim, "meta", options.torch_dtype, options.seed))
        for case, form, kind in cases
    }
    results.measured("GFLOPs of an image", "plain", plain_flops, paper=PAPER_FLOPS["plain"])
    # Dense: two products forward and two backward, of 2 N^2 D or 2 N D^2 operations each.
    shapes = {"row": 8 * tokens**2 * dim / 1e9, "column": 8 * tokens * dim**2 / 1e9}
    for case, form, kind in cases:
        added = sum(shapes[axis] for axis in shapes if axis in kind) if form == "dense" else 0.0
        results.equal(
            "GFLOPs of an image",
            case,
            found[case][0],
            plain_flops + added,
            tolerance=1e-9 if added else 0.0,
            paper=PAPER_FLOPS.get(case),
        )
    results.measured("GiB of a step", "plain", plain_gib, paper=PAPER_GIB["plain"])
    for case, _, _ in cases:
        results.measured("GiB of a step", case, found[case][1], paper=PAPER_GIB.get(case))
    for case, form, kind in cases:
        results.measured(
            f"ms of permuting {options.timed_batch} images",
            case,
            1e3 * _permuting(form, kind, tokens, dim, options),
        )
    return results.frame()


def permutations(
    form: str, kind: str, tokens: int, dim: int, device: str, dtype: torch.dtype, seed: int = 0
) -> tuple[Permute, Permute]:
    """Return what permutes features [B, tokens, dim] and what undoes it.

    Parameters
    ----------
    form : {"index", "dense"}
        By index selection, or by products with permutation matrices.
    kind : {"row", "column", "row and column"}
        What is permuted; one row permutation serves the whole batch, as in the paper.
    tokens, dim, device, dtype, seed
        Sizes, place and precision of the features, and what decides the permutations.
    """
    secret = Secret.from_seed(seed, "cost")
    rows = random_permutations(secret.derive("rows"), count=1, length=tokens)[0].to(device)
    columns = sample_column_order(secret, dim=dim, heads=1).to(device)
    parts: list[tuple[Permute, Permute]] = []
    if "row" in kind:
        by_index: tuple[Permute, Permute] = (
            lambda x: permute_rows(x, rows),
            lambda x: unpermute_rows(x, rows),
        )
        parts.append(by_index if form == "index" else dense_rows(rows, dtype))
    if "column" in kind:
        by_index = (
            lambda x: permute_columns(x, columns),
            lambda x: unpermute_columns(x, columns),
        )
        parts.append(by_index if form == "index" else dense_columns(columns, dtype))
    return _chain([do for do, _ in parts]), _chain([undo for _, undo in reversed(parts)])


def _chain(steps: list[Permute]) -> Permute:
    def work(x: Tensor) -> Tensor:
        for step in steps:
            x = step(x)
        return x

    return work


def _shadow(options: CostOptions) -> Any:
    """Build the model on the device `meta`: shapes without numbers."""
    import timm
    from timm.models.vision_transformer import VisionTransformer

    try:
        with torch.device("meta"):
            model = timm.create_model(options.model)
    except Exception as error:  # timm raises several kinds
        raise ExperimentError(f"model = {options.model}: timm cannot build it: {error}") from error
    if not isinstance(model, VisionTransformer):
        raise ExperimentError(f"model = {options.model}: is no timm VisionTransformer")
    return model.to(options.torch_dtype)


@contextmanager
def _around(blocks: nn.Sequential, do: Permute, undo: Permute) -> Iterator[None]:
    handles = [
        blocks[0].register_forward_pre_hook(lambda _, args: (do(args[0]), *args[1:])),
        blocks[-1].register_forward_hook(lambda _, __, output: undo(output)),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _counted(work: Callable[[], object]) -> tuple[int, int]:
    """Count operations and bytes in one pass."""
    flops: list[int] = []
    held = peak_bytes(lambda: flops.append(count_flops(work)))
    return flops[0], held


def _permuting(form: str, kind: str, tokens: int, dim: int, options: CostOptions) -> float:
    do, undo = permutations(
        form, kind, tokens, dim, options.device, options.torch_dtype, options.seed
    )
    x = torch.randn(options.timed_batch, tokens, dim, dtype=options.torch_dtype)
    x = x.to(options.device).requires_grad_()

    def work() -> None:
        y = undo(do(x))
        torch.autograd.grad(y, x, y.detach())

    return seconds(work, repeat=options.repeat, device=options.device)
