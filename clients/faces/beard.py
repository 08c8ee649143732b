# SPDX-License-Identifier: Apache-2.0
"""Facial hair: stubble, jaw beard, goatee, moustache and sideburns."""

import numpy as np

from clients.faces.anatomy import Anatomy
from clients.faces.canvas import Canvas, band, curve, mirror, moved
from clients.faces.colours import RGB, mix, shade

__all__ = ["draw_beard"]

_STUBBLE: RGB = (52, 54, 66)
_DARK: RGB = (40, 28, 22)
_X = np.linspace(-1.0, 1.0, 13)


def draw_beard(canvas: Canvas, anatomy: Anatomy) -> None:
    """Draw the facial hair that the face has; without `No_Beard` at least a beard along the jaw."""
    colour = mix(shade(anatomy.hair, 0.80), _DARK, 0.30)
    if anatomy.has("5_o_Clock_Shadow"):
        _draw_stubble(canvas, anatomy)
    if anatomy.has("Sideburns"):
        _draw_sideburns(canvas, anatomy, colour)
    if not anatomy.has("No_Beard"):
        _draw_jaw_beard(canvas, anatomy, colour)
    if anatomy.has("Goatee"):
        _draw_goatee(canvas, anatomy, colour)
    if anatomy.has("Mustache"):
        _draw_moustache(canvas, anatomy, colour)


def _lower_face(anatomy: Anatomy, inset: float, rise: float) -> np.ndarray:
    """Polygon of the cheeks' lower part, the lip and the chin."""
    jaw, chin = anatomy.jaw_x - inset, anatomy.chin_y - inset
    half = [
        (0.0, 0.160 + rise),
        (0.060, 0.150 + rise),
        (0.110, 0.175 + rise),
        (jaw + 0.022, 0.110 + rise),
        (jaw, 0.205),
        (jaw * 0.60, chin - 0.028),
        (0.0, chin),
    ]
    return curve(mirror(half), closed=True)


def _draw_stubble(canvas: Canvas, anatomy: Anatomy) -> None:
    for inset in (0.004, 0.016, 0.028):
        canvas.polygon(_lower_face(anatomy, inset, inset), _STUBBLE, 0.20)


def _draw_sideburns(canvas: Canvas, anatomy: Anatomy, colour: RGB) -> None:
    outer = anatomy.half_width + 0.004
    for side in (-1.0, 1.0):
        points = np.array(
            [
                [outer, -0.060],
                [outer + 0.002, 0.060],
                [outer - 0.004, 0.135],
                [outer - 0.048, 0.125],
                [outer - 0.040, 0.020],
                [outer - 0.026, -0.060],
            ]
        )
        canvas.polygon(points * (side, 1.0), colour)


def _draw_jaw_beard(canvas: Canvas, anatomy: Anatomy, colour: RGB) -> None:
    jaw, chin, side = anatomy.jaw_x, anatomy.chin_y, anatomy.half_width
    right = [
        (side * 0.985, 0.060),
        (jaw * 1.05, 0.185),
        (jaw * 0.62, chin - 0.022),
        (0.0, chin + 0.006),
    ]
    inner = [
        (0.0, chin - 0.040),
        (jaw * 0.55, chin - 0.068),
        (jaw * 0.84, 0.160),
        (side * 0.90, 0.060),
    ]
    half = np.concatenate([curve(right), curve(inner)])
    alpha = 0.62 if anatomy.has("5_o_Clock_Shadow") else 0.92
    for mirrored in (-1.0, 1.0):
        canvas.polygon(half * (mirrored, 1.0), colour, alpha)


def _draw_goatee(canvas: Canvas, anatomy: Anatomy, colour: RGB) -> None:
    chin, lip = anatomy.chin_y, anatomy.mouth_y
    half = [
        (0.0, lip + 0.036),
        (0.038, lip + 0.044),
        (0.062, lip + 0.060),
        (0.056, chin - 0.010),
        (0.0, chin + 0.020),
    ]
    canvas.polygon(
        moved(curve(mirror(half), closed=True), anatomy.turn * 0.5, 0.0), shade(colour, 0.85)
    )


def _draw_moustache(canvas: Canvas, anatomy: Anatomy, colour: RGB) -> None:
    x = anatomy.turn + 0.082 * _X
    middle = anatomy.mouth_y - 0.030
    lower = middle + 0.018 + 0.020 * _X**2
    upper = lower - 0.036 * np.sqrt(1.0 - 0.94 * _X**2)
    canvas.polygon(band(x, upper, lower), shade(colour, 0.85))
