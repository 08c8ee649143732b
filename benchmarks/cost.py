# SPDX-License-Identifier: Apache-2.0
"""What split learning costs beside the unsplit model, measured in one run.

    python benchmarks/cost.py [--dim 192] [--depth 12] [--batch 32] [--steps 8] [--repeat 3]
                              [--threads 0]

Rows: the unsplit step for one client's batch and for four; transport ``ray`` with one client;
transport ``message`` with four clients in ``parallel``; the row permutation's share of a step;
bytes of a step against what the shapes say. Unsplit and split take turns, since a machine's speed
drifts; the last column is the unsplit step's time over the split one's, the median of all pairs.
Both times are means over as many steps after a warm-up, so that hiccups of a shared machine count
on both sides alike; the unsplit step has the trunk's setting of the allocator, too.
Flower's and Ray's own processes need some of a core: with all cores for the model they take turns
with it, with ``--threads`` below the number of cores they do not.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Annotated

import torch
import typer
from rich.console import Console
from rich.table import Table
from torch.nn import functional

from config import RunConfig, parse_run_config
from equivariance import Secret, permute_rows, row_orders, unpermute_rows
from reports import RunFolder
from server_app.heap import keep_freed_memory
from split import ModelSpec, OptimiserSpec, build_split
from split.optimise import build_optimiser, step_at

CLIENTS = 4


def main(
    dim: Annotated[int, typer.Option(help="Width of a token.")] = 192,
    depth: Annotated[int, typer.Option(help="Blocks.")] = 12,
    batch: Annotated[int, typer.Option(help="Images of one client in a step.")] = 32,
    steps: Annotated[
        int, typer.Option(help="Steps in each of three rounds; the first warms up.")
    ] = 8,
    repeat: Annotated[int, typer.Option(help="Pairs of unsplit and split runs.", min=1)] = 3,
    threads: Annotated[
        int, typer.Option(help="Threads of the unsplit model and of the trunk; 0: all cores.")
    ] = 0,
) -> None:
    """Print the table."""
    keep_freed_memory()
    if threads:
        torch.set_num_threads(threads)
    keys: dict[str, object] = {
        "data": "synthetic:600",
        "image-size": 64,
        "patch-size": 8,
        "dim": dim,
        "depth": depth,
        "heads": dim // 64,
        "batch-size": batch,
        "steps-per-round": steps,
        "rounds": 3,
        "evaluate-every": 0,
        "min-clients": 1,
        "trunk-threads": threads,
    }
    config = parse_run_config(keys)
    console, table = Console(), Table("what", "images/s", "seconds a step", "beside unsplit")
    one, ray, _ = beside_unsplit(
        config,
        batch,
        steps,
        repeat,
        lambda: split_run(keys, 1, transport="ray", schedule="sequential"),
    )
    table.add_row(f"unsplit, batch {batch}", *_speed(batch, one))
    table.add_row("split, transport ray, 1 client", *_speed(batch, ray))
    four, message, run = beside_unsplit(
        config,
        CLIENTS * batch,
        steps,
        repeat,
        lambda: split_run(keys, CLIENTS, transport="message", schedule="parallel"),
    )
    table.add_row(f"unsplit, batch {CLIENTS} x {batch}", *_speed(CLIENTS * batch, four))
    table.add_row(f"split, transport message, {CLIENTS} clients", *_speed(CLIENTS * batch, message))
    permutation = permutation_seconds(config, batch)
    table.add_row(
        "row permutation of a step, forward and backward",
        "",
        f"{permutation:.4f}",
        f"{permutation / one.seconds:.2%} of a step",
    )
    measured, expected = bytes_per_step(run, config, batch)
    table.add_row(
        "bytes of a client's step",
        "",
        "",
        f"{measured:,.0f}; shapes say {expected:,} ({measured / expected - 1:+.2%})",
    )
    console.print(
        f"{torch.get_num_threads()} threads, torch {torch.__version__}, ViT {dim} x {depth}"
    )
    console.print(table)


@dataclass(frozen=True)
class Measured:
    """Seconds of a step, and the unsplit step's seconds over them, pair by pair."""

    seconds: float
    ratios: tuple[float, ...]


def _speed(images: int, measured: Measured) -> tuple[str, str, str]:
    middle = f"{median(measured.ratios):.2f}"
    spread = f" ({min(measured.ratios):.2f} .. {max(measured.ratios):.2f})"
    speed = f"{images / measured.seconds:.1f}", f"{measured.seconds:.3f}"
    return *speed, middle + (spread if len(set(measured.ratios)) > 1 else "")


def beside_unsplit(
    config: RunConfig, batch: int, steps: int, repeat: int, split: Callable[[], RunFolder]
) -> tuple[Measured, Measured, RunFolder]:
    """The unsplit step and the split one in turn, and the last split run.

    A split run is compared with the mean of the unsplit timings just before and after it.
    """
    unsplit, split_times = [unsplit_seconds(config, batch, steps)], []
    for _ in range(repeat):
        run = split()
        split_times.append(split_seconds(run))
        unsplit.append(unsplit_seconds(config, batch, steps))
    pairs = zip(unsplit, unsplit[1:], split_times, strict=False)
    ratios = tuple((before + after) / 2 / taken for before, after, taken in pairs)
    reference = Measured(median(unsplit), (1.0,))
    return reference, Measured(median(split_times), ratios), run


def unsplit_seconds(config: RunConfig, batch: int, steps: int) -> float:
    """Mean seconds of a training step of the whole model in this process."""
    spec = ModelSpec.of(config)
    model = build_split(spec, config.cut)
    parameters = [p for part in (model.edge, model.trunk, model.tail) for p in part.parameters()]
    optimiser_spec = OptimiserSpec(kind=config.optimizer, lr_start=1e-3, lr_end=1e-5)
    optimiser = build_optimiser(optimiser_spec, parameters)
    images = torch.randn(batch, 3, config.image_size, config.image_size)
    labels = torch.randint(0, 2, (batch, spec.outputs)).float()

    def step() -> None:
        loss = functional.binary_cross_entropy_with_logits(model.forward(images), labels)
        loss.backward()  # type: ignore[no-untyped-call]
        step_at(optimiser, optimiser_spec, 0.0)

    return mean(_seconds(step, steps))


def permutation_seconds(config: RunConfig, batch: int) -> float:
    """Median seconds to draw a batch's row permutations and to permute tokens and gradients."""
    tokens = (config.image_size // config.patch_size) ** 2
    secret, smashed = Secret.from_seed(0, "benchmark"), torch.randn(batch, tokens, config.dim)

    def permute() -> None:
        orders = row_orders(
            secret, rotation="sample", purpose="train", round=1, step=0, batch=batch, tokens=tokens
        )
        unpermute_rows(permute_rows(smashed, orders), orders)

    return median(_seconds(permute, 20))


def _seconds(work: Callable[[], None], times: int) -> list[float]:
    """What each of ``times`` calls took, after two that warm up."""
    for _ in range(2):
        work()
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return taken


def split_run(keys: dict[str, object], clients: int, **more: str) -> RunFolder:
    """A finished run by the command line. A lone client gets as many cores as the model."""
    folder = tempfile.mkdtemp(prefix="permsplit-benchmark-")
    sets = [f"--set={key}={json.dumps(value)}" for key, value in {**keys, **more}.items()]
    cpus = keys["trunk-threads"] or os.cpu_count() or 1 if clients == 1 else 1
    command = [
        *(sys.executable, "-m", "server_app.cli", "run", "--preset", "smoke", *sets),
        *(
            "--clients",
            str(clients),
            "--client-cpus",
            str(cpus),
            "--runs-dir",
            folder,
            "--run-name",
            "cost",
        ),
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return RunFolder.open(Path(folder) / "cost")


def split_seconds(run: RunFolder) -> float:
    """Mean seconds of a step over all rounds but the first, which warms up."""
    table = run.metrics()
    seconds = table[(table["metric"] == "seconds") & (table["round"] > 1)]["value"]
    steps = int(run.config()["steps-per-round"])
    return float(seconds.mean()) / steps


def bytes_per_step(run: RunFolder, config: RunConfig, batch: int) -> tuple[float, int]:
    """Bytes that one client's step moved, and what batch, tokens and width say in fp32."""
    ledger = run.ledger()
    legs = ["smashed", "hidden", "hidden-gradient", "smashed-gradient"]
    training = ledger[ledger["leg"].isin(legs) & (ledger["phase"] == "train")]
    steps = training[training["leg"] == "smashed"]["messages"].sum()
    tokens = 1 + (config.image_size // config.patch_size) ** 2
    return float(training["bytes"].sum() / steps), 4 * 2 * batch * config.dim * (tokens + 1)


if __name__ == "__main__":
    typer.run(main)
