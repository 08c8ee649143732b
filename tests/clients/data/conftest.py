# SPDX-License-Identifier: Apache-2.0
"""A tiny CelebA in the official layout, drawn on the spot, and specs that use it."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from clients.data import ATTRIBUTES, DataSpec

IDENTITIES, EACH = 12, 4
PARTS = [0] * 8 + [1] * 2 + [2] * 2


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """48 pictures of 12 identities, 178 x 218: 32 train, 8 validation, 8 test."""
    folder = tmp_path / "celeba"
    (folder / "img_align_celeba").mkdir(parents=True)
    rng = np.random.default_rng(0)
    count = IDENTITIES * EACH
    names = [f"{number:06d}.jpg" for number in range(1, count + 1)]
    people = rng.permutation(np.repeat(np.arange(IDENTITIES), EACH))
    labels = rng.choice([-1, 1], (count, len(ATTRIBUTES)))
    for name in names:
        block = Image.fromarray(rng.integers(0, 256, (5, 4, 3), dtype=np.uint8))
        block.resize((178, 218)).save(folder / "img_align_celeba" / name)
    rows = [
        f"{name} {' '.join(f'{value:2d}' for value in row)}"
        for name, row in zip(names, labels, strict=True)
    ]
    write(folder / "list_attr_celeba.txt", [str(count), " ".join(ATTRIBUTES) + " ", *rows])
    write(
        folder / "list_eval_partition.txt",
        [f"{name} {PARTS[who]}" for name, who in zip(names, people, strict=True)],
    )
    write(
        folder / "identity_CelebA.txt",
        [f"{name} {who + 100}" for name, who in zip(names, people, strict=True)],
    )
    return folder


def write(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def make_spec(tiny: Path, tmp_path: Path) -> Callable[..., DataSpec]:
    """Return a maker of specs: 16 px of the tiny CelebA with a cache of its own, unless changed."""

    def make(**changes: object) -> DataSpec:
        defaults = {
            "data": f"celeba:{tiny}",
            "image_size": 16,
            "cache_dir": str(tmp_path / "cache"),
        }
        return DataSpec(**(defaults | changes))  # type: ignore[arg-type]

    return make


@pytest.fixture(scope="session")
def real_celeba() -> Path:
    """The folder of real CelebA images that PERMSPLIT_CELEBA names."""
    folder = os.environ.get("PERMSPLIT_CELEBA")
    if not folder:
        pytest.skip("PERMSPLIT_CELEBA names no folder of CelebA in the official layout")
    return Path(folder)
