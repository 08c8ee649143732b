# SPDX-License-Identifier: Apache-2.0
"""What permuting costs by index and by dense matrices, over sizes, measured in one run.

    python benchmarks/permutation.py [--device cuda] [--dtype float32] [--repeat 9]

Every row permutes features [batch, tokens, width] and permutes them back, forward and backward:
operations by `torch.utils.flop_counter`, the most bytes alive at once beyond the input and the
permutation itself (8 bytes an index; dense, a square matrix), and the median time. Index and dense
take turns run by run, since a machine's speed drifts; the last column is the dense time over the
index time of the same turn, the median of all turns.
"""

from collections.abc import Callable
from statistics import median
from typing import Annotated, Literal

import torch
import typer
from rich.console import Console
from rich.table import Table

from equivariance.experiments.cost import FORMS, KINDS, permutations
from equivariance.experiments.measure import count_flops, peak_bytes, seconds

# ViT-Ti, ViT-S and ViT-B at 224 pixels, and ViT-B at 384.
SIZES = ((32, 197, 192), (32, 197, 384), (32, 197, 768), (8, 577, 768))


def main(
    device: Annotated[str, typer.Option(help="Torch device.")] = "cpu",
    dtype: Annotated[Literal["float32", "float64"], typer.Option(help="Precision.")] = "float32",
    repeat: Annotated[int, typer.Option(help="Turns of index and dense.", min=1)] = 9,
) -> None:
    """Print the table."""
    table = Table("B x N x D", "permutation", "form", "GFLOPs", "MiB", "ms", "dense / index")
    for size in SIZES:
        for kind in KINDS:
            works = {form: work(form, kind, size, device, getattr(torch, dtype)) for form in FORMS}
            turns = [
                {form: seconds(works[form], repeat=1, device=device) for form in FORMS}
                for _ in range(repeat)
            ]
            ratios = [turn["dense"] / turn["index"] for turn in turns]
            spread = f"{median(ratios):.1f} ({min(ratios):.1f} .. {max(ratios):.1f})"
            for form in FORMS:
                table.add_row(
                    " x ".join(map(str, size)),
                    kind,
                    form,
                    f"{count_flops(works[form]) / 1e9:.3f}",
                    f"{peak_bytes(works[form]) / 2**20:.1f}",
                    f"{1e3 * median(turn[form] for turn in turns):.2f}",
                    spread if form == "dense" else "",
                )
    where = torch.cuda.get_device_name(device) if device.startswith("cuda") else "CPU"
    console = Console()
    if not console.is_terminal:  # a file or a pipe has no width: take enough
        console = Console(width=110)
    console.print(f"{where}, {torch.get_num_threads()} threads, torch {torch.__version__}, {dtype}")
    console.print(table)


def work(
    form: str, kind: str, size: tuple[int, int, int], device: str, dtype: torch.dtype
) -> Callable[[], None]:
    """Permute and permute back, forward and backward."""
    _, tokens, dim = size
    do, undo = permutations(form, kind, tokens, dim, device, dtype)
    x = torch.randn(size, dtype=dtype, device=device, requires_grad=True)
    gradient = torch.randn_like(x)

    def run() -> None:
        torch.autograd.grad(undo(do(x)), x, gradient)

    return run


if __name__ == "__main__":
    typer.run(main)
