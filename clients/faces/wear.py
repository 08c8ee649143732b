# SPDX-License-Identifier: Apache-2.0
"""What a person wears: clothes, tie, necklace, earrings and glasses."""

import numpy as np

from clients.faces.anatomy import Anatomy
from clients.faces.canvas import Canvas, curve, ellipse, mirror, moved
from clients.faces.colours import RGB, mix, shade

__all__ = ["draw_clothes", "draw_earrings", "draw_glasses", "draw_necklace", "draw_necktie"]

_WHITE: RGB = (250, 250, 252)
_SHIRT: RGB = (236, 238, 242)
_LENS: RGB = (210, 230, 245)
_CORNERS = np.linspace(0.0, 2.0 * np.pi, 25)


def draw_clothes(canvas: Canvas, anatomy: Anatomy) -> None:
    """Draw shoulders in the colour of the clothes."""
    male = anatomy.has("Male")
    wide = 0.44 if male else 0.36
    half = [(0.10, 0.378), (0.20, 0.403), (wide, 0.458 - 0.02 * male), (wide + 0.12, 0.700)]
    colour = shade(anatomy.scene.cloth, 0.85)
    canvas.polygon(curve(mirror(half)), colour)
    canvas.glow(0.2 * anatomy.scene.light_side, 0.50, 0.20, 0.10, mix(colour, _WHITE, 0.25), 0.5)


def draw_necktie(canvas: Canvas, anatomy: Anatomy) -> None:
    """Draw a white collar with a knotted tie."""
    tie = anatomy.scene.tie
    canvas.polygon(np.array([[-0.15, 0.373], [0.15, 0.373], [0.20, 0.70], [-0.20, 0.70]]), _SHIRT)
    for side in (-1.0, 1.0):
        lapel = np.array(
            [[0.150, 0.363], [0.215, 0.408], [0.200, 0.70], [0.075, 0.70], [0.120, 0.498]]
        )
        canvas.polygon(lapel * (side, 1.0), shade(anatomy.scene.cloth, 0.65))
        flap = np.array([[0.135, 0.328], [0.160, 0.388], [0.080, 0.453], [0.010, 0.393]])
        canvas.polygon(flap * (side, 1.0), _WHITE)
        canvas.line((flap * (side, 1.0))[1:], 0.006, shade(_SHIRT, 0.7))
    canvas.polygon(
        np.array([[-0.040, 0.383], [0.040, 0.383], [0.026, 0.433], [-0.026, 0.433]]),
        shade(tie, 0.8),
    )
    canvas.polygon(np.array([[-0.026, 0.433], [0.026, 0.433], [0.060, 0.70], [-0.060, 0.70]]), tie)


def draw_necklace(canvas: Canvas, anatomy: Anatomy) -> None:
    """Draw a chain of beads with a pendant below the throat."""
    colour = anatomy.scene.metal
    angles = np.linspace(0.14 * np.pi, 0.86 * np.pi, 13)
    for angle in angles:
        x, y = 0.135 * np.cos(angle), 0.338 + 0.095 * np.sin(angle)
        canvas.polygon(ellipse(x, y + 0.004, 0.0125, 0.0125), shade(colour, 0.45), 0.8)
        canvas.polygon(ellipse(x, y, 0.0115, 0.0115), colour)
    canvas.polygon(ellipse(0.0, 0.450, 0.020, 0.024), shade(colour, 0.55))
    canvas.polygon(ellipse(0.0, 0.448, 0.015, 0.019), mix(colour, _WHITE, 0.3))


def draw_earrings(canvas: Canvas, anatomy: Anatomy) -> None:
    """Draw pendants, hoops or pearls at both ears, in front of the hair."""
    colour = anatomy.scene.metal
    style = int(anatomy.scene.jewel_style * 3.0)
    for side in (-1.0, 1.0):
        x = side * (anatomy.half_width + 0.016) - 0.6 * anatomy.turn
        if style == 0:
            canvas.polygon(ellipse(x, 0.125, 0.024, 0.034), shade(colour, 0.5))
            canvas.polygon(ellipse(x, 0.123, 0.019, 0.029), colour)
        elif style == 1:
            hoop = ellipse(x, 0.140, 0.028, 0.046)
            canvas.line(np.concatenate([hoop, hoop[:2]]), 0.013, colour)
        else:
            canvas.polygon(ellipse(x, 0.100, 0.014, 0.014), colour)
            canvas.polygon(
                np.array([[x, 0.105], [x + 0.020, 0.165], [x, 0.195], [x - 0.020, 0.165]]), colour
            )
        canvas.polygon(ellipse(x - 0.006, 0.112, 0.006, 0.006), _WHITE)


def draw_glasses(canvas: Canvas, anatomy: Anatomy) -> None:
    """Draw round, square or thin-rimmed glasses."""
    style = int(anatomy.scene.glasses_style * 3.0)
    colour = ((26, 22, 24), (70, 36, 20), (60, 64, 72))[style]
    power = (1.0, 0.45, 0.70)[style]  # exponent of the superellipse: 1 is round, less is square
    rim = (0.013, 0.014, 0.010)[style]
    cosine, sine = np.cos(_CORNERS), np.sin(_CORNERS)
    shape = np.stack(
        [
            0.078 * np.sign(cosine) * np.abs(cosine) ** power,
            0.056 * np.sign(sine) * np.abs(sine) ** power,
        ],
        axis=1,
    )
    for side in (-1.0, 1.0):
        lens = moved(shape, side * (anatomy.eye_x + 0.004) + 1.2 * anatomy.turn, 0.008)
        canvas.polygon(lens, _LENS, 0.16)
        glint = np.array([[-0.045, 0.030], [-0.005, -0.042], [0.012, -0.042], [-0.028, 0.030]])
        canvas.polygon(glint + lens.mean(axis=0), _WHITE, 0.22)
        canvas.line(lens, rim, colour)
        temple = np.array(
            [
                [lens[:, 0].max() if side > 0 else lens[:, 0].min(), -0.008],
                [side * (anatomy.half_width + 0.006), -0.018],
            ]
        )
        canvas.line(temple, rim, colour)
    bridge = np.array([[-0.026, 0.000], [0.0, -0.010], [0.026, 0.000]])
    canvas.line(moved(bridge, 1.2 * anatomy.turn, 0.0), rim, colour)
