# SPDX-License-Identifier: Apache-2.0
"""``synthetic:N``: drawn faces, no download."""

from functools import cached_property
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clients import faces

from ..errors import DataError
from ..schema import ATTRIBUTES, TEST, TRAIN, VALIDATION, Table
from .base import Source

__all__ = ["SyntheticFaces"]

FACES_SEED = 0


class SyntheticFaces(Source):
    """The first N drawn faces: a fixed data set, whatever the run's seed.

    About 70 % of the identities are train, 10 % validation and 20 % test, drawn once for each N.
    """

    usage = "synthetic:N with N a whole number of images, such as synthetic:1600"
    division = "synthetic"
    sizes = (faces.MIN_SIZE, faces.MAX_SIZE)

    def __init__(self, argument: str) -> None:
        least = 3 * faces.IMAGES_PER_IDENTITY
        if not argument.isascii() or not argument.isdigit() or int(argument) < 1:
            raise DataError(f"data = 'synthetic:{argument}': expected {self.usage}")
        self.count = int(argument)
        if self.count < least:
            raise DataError(
                f"data = 'synthetic:{argument}': N must be at least {least}, so that train, "
                f"validation and test each have a person ({faces.IMAGES_PER_IDENTITY} images each)"
            )

    def fingerprint(self) -> str:
        return f"synthetic:{self.count}:{self._drawing_code}"

    @cached_property
    def _drawing_code(self) -> str:
        """Digest of the code that draws, so that a changed brush is not served from the cache."""
        digest = blake2b(digest_size=8)
        for file in sorted(Path(faces.__file__).parent.glob("*.py")):
            digest.update(file.read_bytes())
        return digest.hexdigest()

    def read_table(self) -> Table:
        drawn = [faces.describe_face(index, FACES_SEED) for index in range(self.count)]
        present = [[name in face.attributes for name in ATTRIBUTES] for face in drawn]
        identity = np.array([face.identity for face in drawn], np.int64)
        return Table(
            identity=identity,
            split=_split_by_identity(identity),
            attributes=np.array(present, np.uint8),
            image=np.arange(self.count).astype(np.str_),
        )

    def read_pixels(self, image: str, size: int) -> NDArray[np.uint8]:
        pixels: NDArray[np.uint8] = faces.render_face(int(image), size=size, seed=FACES_SEED)[0]
        return pixels


def _split_by_identity(identity: NDArray[np.int64]) -> NDArray[np.uint8]:
    identities, member = np.unique(identity, return_inverse=True)
    count = len(identities)
    validation, test = max(round(0.1 * count), 1), max(round(0.2 * count), 1)
    order = np.random.default_rng(FACES_SEED).permutation(count)
    split_of = np.full(count, TRAIN, np.uint8)
    split_of[order[:validation]] = VALIDATION
    split_of[order[validation : validation + test]] = TEST
    return split_of[member]
