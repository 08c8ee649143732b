# SPDX-License-Identifier: Apache-2.0
"""What model locking costs, and what it is worth.

    python benchmarks/locking.py cost                       time and memory of lock, unlock, rekey
    python benchmarks/locking.py noise --weights FILE       share of the key that crack recovers
    python benchmarks/locking.py probe --weights FILE --images DIR   use without and with the key

``cost`` runs the commands on a file of a ViT with random weights, each in a process of its own, and
gives their peak memory beside that of a process that only imports what they need (Linux). ``noise``
attacks from copies with noise, in units of each parameter's spread. ``probe`` fits a linear
classifier on the features of the plain model, the locked one with and without its key, and random
weights.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
import timm
import torch
import typer
from matplotlib.figure import Figure
from PIL import Image
from rich.console import Console
from rich.table import Table
from safetensors.torch import load_file, save_file
from timm.models.vision_transformer import checkpoint_filter_fn
from torch import Tensor, nn

from equivariance import Inner, Secret
from equivariance.locking import Lock, Stack, column_order, recovery_by_noise, with_key

MEBI = 1 << 20
LEVELS = "0,0.25,1,4,16,32,64,128,256,512"
# ImageNet's mean and standard deviation, which timm's models expect.
MEAN, SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
Weights = Annotated[Path, typer.Option("--weights", help="Safetensors file of a timm ViT.")]
ModelName = Annotated[str, typer.Option("--model", help="Its name in timm.")]
InnerMode = Annotated[Literal["headwise", "none"], typer.Option("--inner")]


@app.command()
def cost(
    model: ModelName = "vit_base_patch16_224",
    repeat: Annotated[int, typer.Option(min=1, help="Runs of each; the median counts.")] = 3,
) -> None:
    """Print time and peak memory of lock, unlock and rekey."""
    with tempfile.TemporaryDirectory(prefix="permsplit-benchmark-") as name:
        folder = Path(name)
        heads = write_model(model, folder / "m.safetensors")
        for key in ("old", "new"):
            Secret.random().write(folder / f"{key}.key")
        size = (folder / "m.safetensors").stat().st_size / MEBI
        show(cost_table(folder, heads, repeat), f"{model}, {size:.0f} MiB")


@app.command()
def noise(
    weights: Weights,
    model: ModelName = "vit_small_patch14_dinov2",
    inner: InnerMode = "headwise",
    levels: Annotated[str, typer.Option(help="Noise over spread, a comma list.")] = LEVELS,
    seed: Annotated[int, typer.Option(help="Of key and noise.")] = 0,
    out: Annotated[Path | None, typer.Option(help="PNG to draw.")] = None,
) -> None:
    """Print, and draw, the share of the key recovered against noise."""
    blocks = {k: v for k, v in load_file(weights).items() if k.startswith("blocks.")}
    stack = stack_of(timm.create_model(model, num_classes=0), inner)
    numbers = [float(level) for level in levels.split(",")]
    table = pd.DataFrame(
        recovery_by_noise(blocks, stack, Secret.from_seed(seed), numbers, seed=seed)
    )
    show(table, f"{weights.name}, {inner}")
    if out is not None:
        recovery_figure(table, chance=1 / stack.dim).savefig(out, dpi=150)
        print(out)


@app.command()
def probe(
    weights: Weights,
    images: Annotated[Path, typer.Option(help="Folder with train/CLASS/ and test/CLASS/.")],
    model: ModelName = "vit_small_patch14_dinov2",
    side: Annotated[int, typer.Option(help="Pixels; a multiple of the patch.")] = 112,
    inner: InnerMode = "headwise",
    seeds: Annotated[int, typer.Option(min=1, help="Keys, and random models.")] = 3,
) -> None:
    """Print how well a linear probe does on features with and without the key."""
    data = {part: read_images(images / part, side) for part in ("train", "test")}
    rows = probe_accuracies(data, weights, model=model, side=side, inner=inner, seeds=seeds)
    show(rows, f"{weights.name} at {side} px, {inner}, test images: {len(data['test'][1])}")


def write_model(name: str, path: Path) -> int:
    """Write a random timm ViT in float32, and return its number of heads."""
    torch.manual_seed(0)
    model = timm.create_model(name)
    save_file(model.state_dict(), path)
    return int(model.blocks[0].attn.num_heads)


# A process's own peak, without what it inherited from its parent before it became Python.
RUNNER = """
import sys
import equivariance.locking
from server_app.cli import app
if len(sys.argv) > 1:
    app(sys.argv[1:], standalone_mode=False)
status = open("/proc/self/status").read()
print(status.split("VmHWM:")[1].split()[0])
"""


def cost_table(folder: Path, heads: int, repeat: int) -> pd.DataFrame:
    """Median seconds, and greatest peak of memory, of each command on ``m.safetensors``."""
    commands = {
        "import alone": "",
        "lock": f"lock m.safetensors --key old.key --out l --force --heads {heads}",
        "rekey": "rekey l --key old.key --new-key new.key --out r --force",
        "unlock": "unlock l --key old.key --out u --force",
    }
    rows = []
    for name, command in commands.items():
        runs = [measured(command.split(), folder) for _ in range(repeat)]
        seconds, peaks = zip(*runs, strict=True)
        rows.append({"what": name, "seconds": np.median(seconds), "peak MiB": max(peaks)})
    if (folder / "u").read_bytes() != (folder / "m.safetensors").read_bytes():
        raise AssertionError("unlock did not restore the file")
    return pd.DataFrame(rows)


def measured(arguments: list[str], folder: Path) -> tuple[float, float]:
    """Seconds and peak resident memory, in MiB, of a command in a process of its own (Linux)."""
    path = str(Path(__file__).resolve().parents[1])
    began = time.perf_counter()
    process = subprocess.run(
        [sys.executable, "-c", RUNNER, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return time.perf_counter() - began, int(process.stdout.split()[-1]) / 1024


def stack_of(model: Any, inner: Inner) -> Stack:
    """What a timm ViT's blocks are."""
    dim, heads = model.embed_dim, model.blocks[0].attn.num_heads
    return Stack(architecture="timm-vit", dim=dim, heads=heads, inner=inner)


def recovery_figure(table: pd.DataFrame, *, chance: float) -> Figure:
    """Draw the share of the key recovered against noise; columns as of ``recovery_by_noise``."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(table["noise"], table["recovered"], "o-", color="#0072B2", label="whole attack")
    axes.plot(table["noise"], table["nearest"], "s--", color="#D55E00", label="nearest column")
    axes.axhline(chance, color="#666666", linestyle=":", label="chance")
    axes.set_xscale("symlog", linthresh=0.25)
    axes.set_xlim(left=0)
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel("noise in the reference (standard deviation over that of the weights)")
    axes.set_ylabel("share of the key recovered")
    axes.legend()
    return figure


Labelled = tuple[Tensor, Tensor]


def read_images(folder: Path, side: int, per_class: int | None = None) -> Labelled:
    """Read ``CLASS/*`` as normalised images [N, 3, side, side], and class indices [N]."""
    images, labels = [], []
    classes = sorted(path for path in folder.iterdir() if path.is_dir())
    for label, one in enumerate(classes):
        for path in sorted(one.iterdir())[:per_class]:
            with Image.open(path) as image:
                size = (side, side)
                images.append(
                    np.asarray(image.convert("RGB").resize(size, Image.Resampling.BICUBIC))
                )
            labels.append(label)
    pixels = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float() / 255
    mean, spread = (torch.tensor(x).reshape(3, 1, 1) for x in (MEAN, SPREAD))
    return (pixels - mean) / spread, torch.tensor(labels)


def probe_accuracies(
    data: dict[str, Labelled],
    weights: Path,
    *,
    model: str,
    side: int,
    inner: Inner = "headwise",
    seeds: int = 1,
) -> pd.DataFrame:
    """Accuracy of the linear probe on each model's features.

    Columns: ``model``; ``seed`` of key or random weights; ``accuracy`` on the test images;
    ``error``, the greatest distance of a test image's features from the plain model's, relative
    to the plain ones' length.
    """
    plain = build(model, side, 0)
    plain.load_state_dict(checkpoint_filter_fn(load_file(weights), plain))
    stack = stack_of(plain, inner)
    reference = {part: features(plain, images) for part, (images, _) in data.items()}
    rows: list[dict[str, object]] = []

    def add(what: str, seed: int, found: dict[str, Tensor]) -> None:
        distance = (found["test"] - reference["test"]).norm(dim=1) / reference["test"].norm(dim=1)
        accuracy = probe_accuracy(found, {part: labels for part, (_, labels) in data.items()})
        error = float(distance.max())
        rows.append({"model": what, "seed": seed, "accuracy": accuracy, "error": error})

    add("plain", 0, reference)
    for seed in range(seeds):
        secret = Secret.from_seed(seed, "probe")
        locked = build(model, side, seed)
        state = plain.state_dict()
        blocks = {k: v for k, v in state.items() if k.startswith("blocks.")}
        locked.load_state_dict(state | stack.conjugate(blocks, column_order(stack, secret)))
        with with_key(locked, secret, Lock.made(stack, secret)):
            keyed = {part: features(locked, images) for part, (images, _) in data.items()}
        add("locked, with key", seed, keyed)
        for what, one in (("locked, no key", locked), ("random", build(model, side, seed))):
            found = {part: features(one, images) for part, (images, _) in data.items()}
            add(what, seed, found)
    return pd.DataFrame(rows)


def build(name: str, side: int, seed: int) -> nn.Module:
    """A timm ViT that returns features, with random weights."""
    torch.manual_seed(seed)
    model: nn.Module = timm.create_model(name, img_size=side, num_classes=0)
    return model.eval()


@torch.inference_mode()
def features(model: nn.Module, images: Tensor) -> Tensor:
    """Features [N, D] in float64."""
    return torch.cat([model(part) for part in torch.split(images, 64)]).double()


def probe_accuracy(found: dict[str, Tensor], labels: dict[str, Tensor]) -> float:
    """Test accuracy of ridge regression to the classes; every fifth image chooses its strength."""
    mean, spread = found["train"].mean(0), found["train"].std(0) + 1e-6
    train, test = ((found[part] - mean) / spread for part in ("train", "test"))
    held = torch.arange(len(train)) % 5 == 0
    strengths = [10.0**power for power in range(6)]

    def accuracy(fit: Tensor, fit_labels: Tensor, x: Tensor, y: Tensor, strength: float) -> float:
        targets = nn.functional.one_hot(fit_labels).double()
        centre = targets.mean(0)
        gram = fit.T @ fit + strength * torch.eye(fit.shape[1], dtype=torch.float64)
        solution = torch.linalg.solve(gram, fit.T @ (targets - centre))
        return float(((x @ solution + centre).argmax(1) == y).double().mean())

    y = labels["train"]
    best = max(
        strengths, key=lambda one: accuracy(train[~held], y[~held], train[held], y[held], one)
    )
    return accuracy(train, y, test, labels["test"], best)


def show(rows: pd.DataFrame, title: str) -> None:
    """Print a table."""
    table = Table(*rows.columns, title=f"{title}; {torch.get_num_threads()} threads")
    for row in rows.itertuples(index=False):
        table.add_row(*(f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row))
    Console().print(table)


if __name__ == "__main__":
    app()
