# SPDX-License-Identifier: Apache-2.0
"""Pictures that attacks leave in a run folder: victims, and what attackers made of them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from reports.errors import RunFolderError
from reports.run_folder import RunFolder

FILE = "reconstructions.safetensors"
ORIGINAL, RECONSTRUCTION = "original", "reconstruction"

Images = NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True)
class Reconstructions:
    """What one attacker left.

    Parameters
    ----------
    attack : str
        Name of the attacker.
    original : array
        Victims [k, H, W, 3], uint8.
    ways : dict
        Reconstructions [k, H, W, 3] by way, ``""`` for an attacker with one.
    ssim : dict
        Mean SSIM by way, over all victims of the very attack that left the pictures; empty if it
        was not measured. A table may count another, stronger try.
    """

    attack: str
    original: Images
    ways: dict[str, Images]
    ssim: dict[str, float]


def attacks_with_pictures(run: RunFolder) -> list[str]:
    """Names of the attackers that left pictures."""
    return sorted(path.parent.name for path in (run.path / "attacks").glob(f"*/{FILE}"))


def reconstructions(run: RunFolder, attack: str) -> Reconstructions | None:
    """The pictures of one attacker, or None if it left none.

    Raises
    ------
    RunFolderError
        If the file is broken or holds anything but pictures of one size.
    """
    path = run.path / "attacks" / attack / FILE
    if not path.is_file():
        return None
    tensors, scores = _load(path)
    original = tensors.pop(ORIGINAL, None)
    if original is None or not tensors:
        raise RunFolderError(f"{path}: has no {ORIGINAL!r} or no {RECONSTRUCTION!r}")
    for name, images in tensors.items():
        if images.dtype != np.uint8 or images.ndim != 4 or images.shape != original.shape:
            raise RunFolderError(
                f"{path}: {name!r} is {images.dtype} {list(images.shape)}, and must be uint8 "
                f"[k, H, W, 3] like {ORIGINAL!r}, {list(original.shape)}"
            )
    ways = {_way(name): images for name, images in sorted(tensors.items())}
    ssim = {_way(name): scores[name] for name in tensors if name in scores}
    return Reconstructions(attack=attack, original=original, ways=ways, ssim=ssim)


def _way(name: str) -> str:
    return name.removeprefix(RECONSTRUCTION).lstrip("/")


def _load(path: Path) -> tuple[dict[str, Images], dict[str, float]]:
    """The pictures, and the scores that the file's metadata hold under their names."""
    try:
        with safe_open(path, framework="np") as file:
            tensors: dict[str, Images] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            told = file.metadata() or {}
        return tensors, {name: float(told[name]) for name in tensors if name in told}
    except (SafetensorError, OSError, ValueError) as error:
        raise RunFolderError(f"{path} cannot be read: {error}") from error
