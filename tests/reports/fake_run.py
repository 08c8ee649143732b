# SPDX-License-Identifier: Apache-2.0
"""A run as a server would have left it, with numbers that are easy to check by hand."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from safetensors.numpy import save_file

from reports import RunFolder

CONFIG: dict[str, object] = {
    "data": "synthetic:1600", "image-size": 32, "model": "vit_tiny_patch16_224", "cut": 0,
    "pool": "cls", "edge-position": "learned", "permute": "row", "rotation": "sample",
    "permute-cls": False, "return": "pooled", "key-source": "seed",
    "defences": "lp:0.05,gn:0.5", "defence-point": "pixels", "schedule": "parallel",
    "transport": "message", "wire-dtype": "fp32", "client-weights": "averaged", "rounds": 2,
    "batch-size": 32, "seed": 7, "runs-dir": "runs", "run-name": "first",
}  # fmt: skip

NAN = float("nan")

ATTRIBUTES = {"Smiling": (0.80, 0.78, 0.50), "Male": (0.90, 0.85, 0.60), "Bald": (0.94, 0.50, 0.97)}

MakeRun = Callable[..., RunFolder]


def metric(
    metric: str, value: float, *, split: str = "test", attribute: str = "mean", client: int = -1,
    count: int = 200,
) -> dict[str, object]:  # fmt: skip
    """One row of metrics, without its round."""
    return {
        "split": split, "client": client, "attribute": attribute, "metric": metric,
        "value": value, "count": count,
    }  # fmt: skip


def leg(leg: str, direction: str, size: int, seconds: float, **more: Any) -> dict[str, object]:
    """One row of the ledger, without its round."""
    row = {"client": 0, "phase": "train", "messages": 10, "images": 320}
    return row | {"leg": leg, "direction": direction, "bytes": size, "seconds": seconds} | more


def evaluation(round: int) -> list[dict[str, object]]:
    """Means and per-attribute values of the test split; later rounds are better."""
    drop = 0.10 * (2 - round)
    rows = [
        metric("accuracy", 0.88 - drop),
        metric("balanced_accuracy", 0.71 - drop),
        metric("floor", 0.69),
        metric("loss", 0.30 + drop, attribute=""),
    ]
    for name, (accuracy, balanced, floor) in ATTRIBUTES.items():
        rows += [
            metric("accuracy", accuracy - drop, attribute=name),
            metric("balanced_accuracy", balanced - drop, attribute=name),
            metric("floor", floor, attribute=name),
        ]
    return rows


def training(round: int) -> list[dict[str, object]]:
    """Loss of two clients, speed over both."""
    return [
        metric("loss", 0.60 / round, split="train", attribute="", client=0, count=300),
        metric("loss", 1.00 / round, split="train", attribute="", client=1, count=100),
        metric("images_per_second", 100.0 * round, split="train", attribute="", count=400),
    ]


def ledger() -> list[dict[str, object]]:
    """One round of two clients with 10 steps each."""
    rows = [leg("smashed", "up", 1_000_000, 2.0, client=client) for client in (0, 1)]
    rows += [leg("hidden", "down", 50_000, 1.0, client=client) for client in (0, 1)]
    rows += [leg("trunk-compute", "none", 0, 4.0, client=-1, messages=0, images=0)]
    rows += [leg("evaluate-smashed", "up", 300_000, 0.5, phase="evaluate", messages=3, images=200)]
    return rows


ATTACK: dict[str, object] = {
    "attack": "decoder", "variant": "", "threat": "black-box", "round": 2, "client": -1, "seed": 7,
    "defences": "lp:0.05,gn:0.5", "defence_point": "pixels", "permute": "row",
    "rotation": "sample", "edge_position": "learned", "metric": "ssim",
    "value": 0.167, "low": 0.150, "high": 0.184, "floor_mean_image": 0.140,
    "floor_random_image": 0.110, "floor_untrained": 0.020, "floor_chance": NAN, "embedder": "",
    "count": 64,
}  # fmt: skip


def fill(run: RunFolder) -> None:
    """Write two rounds of two clients, an attack and a good end into ``run``."""
    run.add_facts({"clients": 2, "data": {"train images": 1200, "test images": 200}})
    for number in (1, 2):
        run.append_metrics(training(number), round=number)
        run.append_metrics(evaluation(number), round=number)
        run.append_ledger(ledger(), round=number)
        with run.new_checkpoint(number) as folder:
            (folder / "trunk.safetensors").write_bytes(b"weights")
    run.append_attacks([ATTACK])
    run.set_status("finished")


def attack_row(run: RunFolder, **changes: object) -> dict[str, object]:
    """A row about ``run``, with the defence keys of its config."""
    config = run.config()
    keys = ("defences", "defence-point", "permute", "rotation", "edge-position")
    return ATTACK | {key.replace("-", "_"): config[key] for key in keys} | changes


def attacked(run: RunFolder, ssim: dict[tuple[str, str, str], float], accuracy: float) -> RunFolder:
    """End ``run`` with one evaluation and an attack by each ``(attack, variant, threat)``."""
    run.add_facts({"clients": 2})
    run.append_metrics([metric("accuracy", accuracy), metric("floor", 0.69)], round=2)
    for (attack, variant, threat), value in ssim.items():
        way = {"attack": attack, "variant": variant, "threat": threat}
        interval = {"value": value, "low": value - 0.02, "high": value + 0.02}
        psnr = {"metric": "psnr", "value": 10 + 20 * value, "low": 9.0, "high": 31.0}
        paper = {"metric": "ssim_paper", "value": value - 0.1, "low": NAN, "high": NAN}
        run.append_attacks(
            [attack_row(run, **way, **more) for more in (interval, psnr, paper)]  # type: ignore[arg-type]
        )
    run.set_status("finished")
    return run


def leave_pictures(run: RunFolder, attack: str, ways: tuple[str, ...] = ("",)) -> Path:
    """Pictures and a learning curve of an attacker, whose ways scored 0.55, 0.45, 0.35, ..."""
    folder = run.path / "attacks" / attack
    folder.mkdir(parents=True, exist_ok=True)
    original = np.random.default_rng(0).integers(0, 255, (9, 8, 8, 3), dtype=np.uint8)
    tensors, ssim = {"original": original}, {}
    for number, way in enumerate(ways):
        name = f"reconstruction/{way}" if way else "reconstruction"
        tensors[name], ssim[name] = original // (number + 2), str(0.55 - 0.1 * number)
    save_file(tensors, folder / "reconstructions.safetensors", metadata=ssim)
    finished = {"rows": 4, "auxiliary": {"images": 120, "people": 11}}
    (folder / "finished.json").write_text(json.dumps(finished), encoding="utf-8")
    points = [
        {"stage": attack, "epoch": epoch, "loss": 1 / (epoch + 1), "held_out": 1.2 / (epoch + 1)}
        for epoch in range(4)
    ]
    (folder / "history.json").write_text(json.dumps(points), encoding="utf-8")
    return folder / "reconstructions.safetensors"


BLACK_BOX = ("decoder", "", "black-box")
PER_TOKEN = ("position", "per-token", "known-edge")
SET = ("position", "set", "known-edge")
BEST = ("position", "best", "known-edge")
TOLD = ("analytic", "inverse", "told-order")

GRID: tuple[tuple[str, str, float, dict[tuple[str, str, str], float]], ...] = (
    ("", "none", 0.88, {BLACK_BOX: 0.83, PER_TOKEN: 0.81, SET: 0.80, BEST: 0.81, TOLD: 0.99}),
    ("", "row", 0.88, {BLACK_BOX: 0.37, PER_TOKEN: 0.82, SET: 0.78, BEST: 0.78, TOLD: 0.99}),
    ("gn:0.5", "none", 0.84, {BLACK_BOX: 0.56, BEST: 0.55}),
    ("gn:0.5", "row", 0.84, {BLACK_BOX: 0.27, BEST: 0.30}),
    ("gn:1.0", "none", 0.81, {BLACK_BOX: 0.40, BEST: 0.39}),
    ("gn:1.0", "row", 0.81, {BLACK_BOX: 0.24, BEST: 0.25}),
    ("lp:0.05", "none", 0.86, {BLACK_BOX: 0.62, BEST: 0.60}),
    ("lp:0.05", "row", 0.86, {BLACK_BOX: 0.30, BEST: 0.58}),
    ("bs:0.4", "none", 0.80, {BLACK_BOX: 0.20, BEST: 0.21}),
    ("bs:0.4", "row", 0.79, {BLACK_BOX: 0.19, BEST: 0.20}),
)  # fmt: skip
"""defences, permute, accuracy, SSIM by attacker's way: like a small table 6."""


def fake_sweep(folder: Path, *, pictures: bool = True) -> Path:
    """A sweep over :data:`GRID` with one trial that failed and one that is still to come."""
    trials = []
    for number, (defences, permute, accuracy, ssim) in enumerate(GRID):
        name = f"trial-{number:02d}"
        config = CONFIG | {"run-name": name, "defences": defences, "permute": permute}
        run = attacked(RunFolder.create(folder, name, config), ssim, accuracy)
        if pictures:
            leave_pictures(run, "decoder")
            leave_pictures(run, "position", ("best", "per-token", "set"))
        trials.append(trial(name, "finished", seconds=60.0, defences=defences, permute=permute))
    error = "Traceback (most recent call last):\n  File ...\nRuntimeError: trunk lost"
    trials.append(trial("trial-10", "failed", error=error, defences="lp:0.01"))
    trials.append(trial("trial-11", "pending", defences="lp:0.02"))
    pd.DataFrame(trials).to_parquet(folder / "trials.parquet")
    (folder / "sweep.toml").write_text('preset = "smoke"\n', encoding="utf-8")
    return folder


def trial(
    name: str, status: str, *, error: str = "", seconds: float = NAN, **keys: object
) -> dict[str, object]:
    """One row of a sweep's table of trials."""
    known = {"defences": "", "permute": "row"} | keys
    return {"trial": name, "status": status, "error": error, "seconds": seconds, **known}
