# SPDX-License-Identifier: Apache-2.0
"""What a source of images provides."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..schema import Table

__all__ = ["Source"]


class Source(ABC):
    """Images with identities and the 40 attributes, in a fixed order of rows.

    Parameters
    ----------
    argument : str
        What follows the colon in ``scheme:argument``. Nothing is read yet.
    """

    usage: ClassVar[str]
    """How to write it, for error messages."""

    division: ClassVar[str]
    """Where the splits come from, for error messages."""

    sizes: ClassVar[tuple[int, int]] = (1, 4096)
    """The smallest and the largest ``image_size`` it gives."""

    @abstractmethod
    def __init__(self, argument: str) -> None: ...

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a text that changes when the source changes. Cheap: asked at each load.

        Raises
        ------
        DataError
            If the source is absent or incomplete; names all that is missing.
        """

    @abstractmethod
    def read_table(self) -> Table:
        """Read and check all rows, no pixels. ``split`` is the source's own, without auxiliary.

        Raises
        ------
        DataError
            With all problems found.
        """

    @abstractmethod
    def read_pixels(self, image: str, size: int) -> NDArray[np.uint8]:
        """Return one image by its reference in the table, RGB. [size, size, 3].

        Raises
        ------
        OSError
            If the image cannot be decoded.
        """
