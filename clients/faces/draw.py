# SPDX-License-Identifier: Apache-2.0
"""The renderer: one description becomes one picture, drawn from the back to the front."""

import numpy as np
from PIL import Image, ImageFilter

from clients.faces.anatomy import Anatomy, measure
from clients.faces.beard import draw_beard
from clients.faces.canvas import Canvas
from clients.faces.description import FaceDescription, Scene
from clients.faces.features import draw_brows, draw_eyes, draw_mouth, draw_nose
from clients.faces.hair import draw_back_hair, draw_front_hair, draw_hat
from clients.faces.head import draw_ears, draw_neck, draw_skin, draw_skin_marks
from clients.faces.wear import (
    draw_clothes,
    draw_earrings,
    draw_glasses,
    draw_necklace,
    draw_necktie,
)

__all__ = ["MAX_SIZE", "MIN_SIZE", "draw_face", "require_size"]

MIN_SIZE = 16
MAX_SIZE = 512

_BLUR_RADIUS = 0.028  # of the image width: lids and teeth vanish, the face stays
_SIDE_LIGHT = 0.16
_WARMTH = np.array([0.035, 0.0, -0.035])


def require_size(size: int) -> None:
    """Check an image size.

    Raises
    ------
    ValueError
        If `size` is outside of `MIN_SIZE` to `MAX_SIZE`.
    """
    if not MIN_SIZE <= size <= MAX_SIZE:
        raise ValueError(f"size: got {size}, allowed is {MIN_SIZE} to {MAX_SIZE} pixels")


def draw_face(face: FaceDescription, size: int) -> np.ndarray:
    """Render a face.

    Parameters
    ----------
    face : FaceDescription
        What to draw.
    size : int
        Width and height in pixels, 16 to 512.

    Returns
    -------
    numpy.ndarray
        uint8 RGB picture in [0, 255], shape [size, size, 3].

    Raises
    ------
    ValueError
        If `size` is out of range.
    """
    require_size(size)
    scene = face.scene
    canvas = Canvas(size, shift=scene.shift, scale=scene.scale, roll=scene.roll)
    canvas.backdrop(scene.backdrop)
    _draw_person(canvas, measure(face))
    image = canvas.finish()
    if "Blurry" in face.attributes:
        image = image.filter(ImageFilter.GaussianBlur(_BLUR_RADIUS * size))
    return _light(image, scene)


def _draw_person(canvas: Canvas, anatomy: Anatomy) -> None:
    """Draw all layers, back to front."""
    draw_clothes(canvas, anatomy)
    draw_back_hair(canvas, anatomy)
    draw_neck(canvas, anatomy)
    if anatomy.has("Wearing_Necktie"):
        draw_necktie(canvas, anatomy)
    if anatomy.has("Wearing_Necklace"):
        draw_necklace(canvas, anatomy)
    draw_ears(canvas, anatomy)
    draw_skin(canvas, anatomy)
    draw_skin_marks(canvas, anatomy)
    draw_beard(canvas, anatomy)
    draw_nose(canvas, anatomy)
    draw_mouth(canvas, anatomy)
    draw_eyes(canvas, anatomy)
    draw_brows(canvas, anatomy)
    draw_front_hair(canvas, anatomy)
    if anatomy.has("Wearing_Hat"):
        draw_hat(canvas, anatomy)
    if anatomy.has("Eyeglasses"):
        draw_glasses(canvas, anatomy)
    if anatomy.has("Wearing_Earrings"):
        draw_earrings(canvas, anatomy)


def _light(image: Image.Image, scene: Scene) -> np.ndarray:
    """Light the picture: brightness, warmth, and a fall-off to the side away from the lamp."""
    ramp = np.linspace(-1.0, 1.0, image.width) * (_SIDE_LIGHT * scene.light_side)
    gain = np.float32(scene.brightness) * (1.0 + ramp)[:, None] * (1.0 + scene.warmth * _WARMTH)
    lit = np.asarray(image, dtype=np.float32) * gain.astype(np.float32)
    pixels: np.ndarray = np.clip(lit + 0.5, 0.0, 255.0).astype(np.uint8)
    return pixels
