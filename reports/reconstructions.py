# SPDX-License-Identifier: Apache-2.0
"""Pictures that attacks leave in a run folder: victims, and what attackers made of them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

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
    """

    attack: str
    original: Images
    ways: dict[str, Images]


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
    tensors = _load(path)
    original = tensors.pop(ORIGINAL, None)
    if original is None or not tensors:
        raise RunFolderError(f"{path}: has no {ORIGINAL!r} or no {RECONSTRUCTION!r}")
    for name, images in tensors.items():
        if images.dtype != np.uint8 or images.ndim != 4 or images.shape != original.shape:
            raise RunFolderError(
                f"{path}: {name!r} is {images.dtype} {list(images.shape)}, and must be uint8 "
                f"[k, H, W, 3] like {ORIGINAL!r}, {list(original.shape)}"
            )
    ways = {name.removeprefix(RECONSTRUCTION).lstrip("/"): images
            for name, images in sorted(tensors.items())}  # fmt: skip
    return Reconstructions(attack=attack, original=original, ways=ways)


def _load(path: Path) -> dict[str, Images]:
    try:
        tensors: dict[str, Images] = load_file(path)
    except (SafetensorError, OSError) as error:
        raise RunFolderError(f"{path} cannot be read: {error}") from error
    return tensors
