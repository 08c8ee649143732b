# SPDX-License-Identifier: Apache-2.0
"""From an encoded image to square uint8 pixels."""

from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

__all__ = ["decode_square"]


def decode_square(file: Path | BinaryIO, size: int) -> NDArray[np.uint8]:
    """Decode an image, cut its central square and resize it.

    The largest central square (178 x 178 of CelebA's 178 x 218) is resized by Pillow's bilinear
    filter, which widens with the scale when shrinking: antialiased, as in torchvision.

    Parameters
    ----------
    file : Path or BinaryIO
        JPEG, PNG or another format that Pillow reads.
    size : int
        Side of the result in pixels.

    Returns
    -------
    NDArray[np.uint8]
        RGB pixels. [size, size, 3]

    Raises
    ------
    OSError
        If the image is truncated or not an image.
    """
    with Image.open(file) as image:
        width, height = image.size
        side = min(width, height)
        left, top = (width - side) // 2, (height - side) // 2
        square = image.crop((left, top, left + side, top + side)).convert("RGB")
    return np.asarray(square.resize((size, size), Image.Resampling.BILINEAR))
