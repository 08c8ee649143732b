# SPDX-License-Identifier: Apache-2.0
"""A trained ViT-S/14, locked: with its key, without it, and attacked from the public weights."""

from pathlib import Path

import pytest
from safetensors.torch import load_file

from benchmarks.locking import probe_accuracies, read_images
from equivariance import Secret
from equivariance.locking import (
    Stack,
    crack_file,
    lock_file,
    recovery_by_noise,
    share_recovered,
    unlock_file,
)

SHARED = Path(__file__).resolve().parents[4] / "shared"
WEIGHTS = SHARED / "weights" / "vit_small_patch14_dinov2.fp16.safetensors"
IMAGES = SHARED / "cifar10-mini"
NAME = "vit_small_patch14_dinov2"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not WEIGHTS.exists(), reason="the trained weights are not here"),
]


def test_lock_unlock_and_crack(tmp_path: Path) -> None:
    locked, unlocked, cracked = (tmp_path / name for name in ("locked", "unlocked", "cracked"))
    secret = Secret.from_seed(1)
    lock = lock_file(WEIGHTS, locked, secret)
    assert (lock.architecture, lock.dim, lock.heads) == ("timm-vit", 384, 6)
    unlock_file(locked, unlocked, secret)
    assert unlocked.read_bytes() == WEIGHTS.read_bytes()
    found = crack_file(locked, WEIGHTS, unlocked=cracked)
    assert share_recovered(found.order, lock.order(secret)) == 1
    assert found.residual == 0
    assert cracked.read_bytes() == WEIGHTS.read_bytes()


def test_the_share_recovered_falls_with_noise() -> None:
    blocks = {k: v for k, v in load_file(WEIGHTS).items() if k.startswith("blocks.")}
    stack = Stack(architecture="timm-vit", dim=384, heads=6, inner="headwise")
    rows = list(recovery_by_noise(blocks, stack, Secret.from_seed(1), [0.25, 1, 512]))
    assert [row["recovered"] for row in rows[:2]] == [1, 1]
    assert rows[2]["recovered"] < 0.1


@pytest.mark.skipif(not IMAGES.exists(), reason="the images are not here")
def test_features_are_exact_with_the_key_and_worth_little_without() -> None:
    side = 56
    counts = {"train": 60, "test": 30}
    data = {part: read_images(IMAGES / part, side, count) for part, count in counts.items()}
    table = probe_accuracies(data, WEIGHTS, model=NAME, side=side).set_index("model")
    accuracy, error = table["accuracy"], table["error"]
    assert error["locked, with key"] < 1e-4  # float32; the order of sums differs between CPUs
    assert error["locked, no key"] > 0.1
    assert accuracy["locked, with key"] == accuracy["plain"]
    assert accuracy["plain"] > accuracy["random"] + 0.2
    # 300 images: two standard errors of a difference are about 0.07.
    assert accuracy["locked, no key"] < accuracy["random"] + 0.07
