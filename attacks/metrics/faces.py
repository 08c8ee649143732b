# SPDX-License-Identifier: Apache-2.0
"""F-SIM: is it the same face? The cosine of embeddings by a pluggable face network."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

__all__ = ["FACE_BOX", "FaceEmbedder", "cut_faces", "f_sim"]

FACE_BOX = (33 / 178, 41 / 178, 145 / 178, 153 / 178)
"""Left, top, right, bottom of the face, as shares of the image's side.

In an aligned CelebA image of 178 x 218 pixels the face is in the box (33, 61, 145, 173), and a
run's square images are its central square, rows 20 to 198. At 64 pixels that is 40 x 40 of them,
enlarged to what the network takes: F-SIM of small images compares blurred faces.
"""


class FaceEmbedder(Protocol):
    """A face network. ``name`` is written beside every value."""

    name: str

    def embed(self, images: Tensor) -> NDArray[np.float64]:
        """Embeddings ``[M, E]`` of images ``[M, 3, H, W]`` in [0, 1]."""
        ...


def f_sim(
    originals: Tensor, reconstructions: Tensor, embedder: FaceEmbedder
) -> NDArray[np.float64]:
    """Cosine of the embeddings of each pair, ``[M]``; what strangers have is not 0, see floors.

    The paper's code takes the absolute value of the cosine, by facenet's InceptionResnetV1
    (VGGFace2) on the whole image: its F-SIM is on another scale than that of any network here.
    """
    a, b = embedder.embed(originals), embedder.embed(reconstructions)
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    cosine: NDArray[np.float64] = (a * b).sum(axis=1) / np.maximum(norms, 1e-12)
    return cosine


def cut_faces(images: Tensor, side: int) -> Tensor:
    """The face of each image, ``[M, 3, side, side]`` in [0, 1]."""
    images = images.detach().float().cpu()
    height, width = images.shape[-2:]
    left, top, right, bottom = FACE_BOX
    box = images[
        :,
        :,
        round(top * height) : round(bottom * height),
        round(left * width) : round(right * width),
    ]
    return functional.interpolate(
        box, size=(side, side), mode="bilinear", align_corners=False, antialias=True
    ).clamp(0, 1)
