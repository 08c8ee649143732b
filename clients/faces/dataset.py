# SPDX-License-Identifier: Apache-2.0
"""Images of the synthetic data set by their number."""

import numpy as np

from clients.faces.attributes import ATTRIBUTES, attribute_vector
from clients.faces.description import describe_face, require_natural
from clients.faces.draw import draw_face, require_size

__all__ = ["generate_faces", "render_face"]


def render_face(index: int, *, size: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, int]:
    """Render image `index` of data set `seed`; equal arguments give equal bytes.

    Parameters
    ----------
    index : int
        Number of the image, 0 or more.
    size : int
        Width and height in pixels, 16 to 512.
    seed : int
        Number of the data set, 0 or more.

    Returns
    -------
    image : numpy.ndarray
        uint8 RGB in [0, 255], shape [size, size, 3].
    attributes : numpy.ndarray
        uint8, shape [40], 0 or 1 in the order of `ATTRIBUTES`.
    identity : int
        Number of the person, `index // IMAGES_PER_IDENTITY`.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    face = describe_face(index, seed)
    return draw_face(face, size), attribute_vector(face.attributes), face.identity


def generate_faces(
    count: int, *, size: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Render the images 0 to `count` - 1 of data set `seed`.

    Parameters
    ----------
    count : int
        Number of images, 0 or more; a longer data set begins with the shorter one.
    size : int
        Width and height in pixels, 16 to 512.
    seed : int
        Number of the data set, 0 or more.

    Returns
    -------
    images : numpy.ndarray
        uint8 RGB in [0, 255], shape [count, size, size, 3].
    attributes : numpy.ndarray
        uint8, shape [count, 40], 0 or 1 in the order of `ATTRIBUTES`.
    identities : numpy.ndarray
        int64, shape [count], numbers of the persons.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    require_natural("count", count)
    require_natural("seed", seed)
    require_size(size)
    images = np.empty((count, size, size, 3), dtype=np.uint8)
    attributes = np.empty((count, len(ATTRIBUTES)), dtype=np.uint8)
    identities = np.empty(count, dtype=np.int64)
    for index in range(count):
        images[index], attributes[index], identities[index] = render_face(
            index, size=size, seed=seed
        )
    return images, attributes, identities
