# SPDX-License-Identifier: Apache-2.0
"""Contact sheet of the synthetic faces: `python -m clients.faces --out sheet.png`."""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

from clients.faces.dataset import generate_faces
from clients.faces.description import IMAGES_PER_IDENTITY


def contact_sheet(images: np.ndarray, columns: int) -> np.ndarray:
    """Lay images [n, s, s, 3] out in rows of `columns`; returns [rows * s, columns * s, 3]."""
    count, size = images.shape[:2]
    rows = -(-count // columns)
    sheet = np.full((rows * columns, size, size, 3), 255, dtype=np.uint8)
    sheet[:count] = images
    tiled = sheet.reshape(rows, columns, size, size, 3).swapaxes(1, 2)
    return tiled.reshape(rows * size, columns * size, 3)


def main() -> None:
    """Write the sheet that the command line asks for."""
    parser = argparse.ArgumentParser(prog="clients.faces", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="picture to write, e.g. sheet.png")
    parser.add_argument("--count", type=int, default=40, help="number of faces (default 40)")
    parser.add_argument("--size", type=int, default=64, help="pixels of a face (default 64)")
    parser.add_argument("--seed", type=int, default=0, help="number of the data set (default 0)")
    arguments = parser.parse_args()
    if arguments.count < 1:
        parser.error(f"--count: got {arguments.count}, allowed is 1 or more")
    try:
        images, _, _ = generate_faces(arguments.count, size=arguments.size, seed=arguments.seed)
    except ValueError as error:
        parser.error(str(error))
    Image.fromarray(contact_sheet(images, IMAGES_PER_IDENTITY)).save(arguments.out)


if __name__ == "__main__":
    main()
