# SPDX-License-Identifier: Apache-2.0
"""Synthetic faces: a deterministic data set in CelebA's 40-attribute schema, drawn on demand."""

from clients.faces.attributes import ATTRIBUTES, FREQUENCIES, IMAGE_ATTRIBUTES, attribute_vector
from clients.faces.dataset import generate_faces, render_face
from clients.faces.description import (
    IMAGES_PER_IDENTITY,
    FaceDescription,
    Scene,
    Traits,
    describe_face,
)
from clients.faces.draw import MAX_SIZE, MIN_SIZE, draw_face

__all__ = [
    "ATTRIBUTES",
    "FREQUENCIES",
    "IMAGES_PER_IDENTITY",
    "IMAGE_ATTRIBUTES",
    "MAX_SIZE",
    "MIN_SIZE",
    "FaceDescription",
    "Scene",
    "Traits",
    "attribute_vector",
    "describe_face",
    "draw_face",
    "generate_faces",
    "render_face",
]
