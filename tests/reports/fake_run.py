# SPDX-License-Identifier: Apache-2.0
"""A run as a server would have left it, with numbers that are easy to check by hand."""

from collections.abc import Callable
from typing import Any

from reports import RunFolder

CONFIG: dict[str, object] = {
    "data": "synthetic:1600", "image-size": 32, "model": "vit_tiny_patch16_224", "cut": 0,
    "pool": "cls", "edge-position": "learned", "permute": "row", "rotation": "sample",
    "permute-cls": False, "return": "pooled", "key-source": "seed",
    "defences": "lp:0.05,gn:0.5", "defence-point": "pixels", "schedule": "parallel",
    "transport": "message", "wire-dtype": "fp32", "client-weights": "averaged", "rounds": 2,
    "batch-size": 32, "seed": 7, "runs-dir": "runs", "run-name": "first",
}  # fmt: skip

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
    "attack": "decoder", "threat": "black-box", "round": 2, "client": -1,
    "defences": "lp:0.05,gn:0.5", "defence_point": "pixels", "permute": "row", "metric": "ssim",
    "value": 0.167, "low": 0.150, "high": 0.184, "floor": 0.140, "floor_kind": "mean-image",
    "embedder": "", "count": 64,
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
