# SPDX-License-Identifier: Apache-2.0
"""Eyes, brows, nose and mouth of a drawn face."""

import numpy as np

from clients.faces.anatomy import Anatomy
from clients.faces.canvas import Canvas, band, curve, ellipse, moved
from clients.faces.colours import RGB, mix, shade

__all__ = ["draw_brows", "draw_eyes", "draw_mouth", "draw_nose"]

_WHITE: RGB = (250, 250, 248)
_EYE_WHITE: RGB = (238, 236, 232)
_LINER: RGB = (30, 20, 22)
_BROW: RGB = (44, 32, 26)
_NATURAL_LIP: RGB = (172, 98, 92)
_MOUTH_INSIDE: RGB = (74, 18, 24)

_EYE_X = np.linspace(-1.0, 1.0, 13)
_EYE_ARCH = 1.0 - _EYE_X**2
_BROW_X = np.linspace(0.0, 1.0, 11)
_BROW_TAPER = np.interp(_BROW_X, [0.0, 0.12, 0.6, 1.0], [0.55, 1.0, 0.85, 0.12])
_BROW_ARCH = np.interp(_BROW_X, [0.0, 0.25, 0.65, 1.0], [0.0, 0.55, 1.0, 0.10])
_LIP_X = np.linspace(-1.0, 1.0, 17)
_LIP_ARCH = 1.0 - _LIP_X**2
_CUPID = (1.0 - 0.35 * np.exp(-((_LIP_X / 0.16) ** 2))) * np.sqrt(_LIP_ARCH)


def draw_eyes(canvas: Canvas, anatomy: Anatomy) -> None:
    """Draw both eyes with lids, lashes and make-up."""
    for side in (-1.0, 1.0):
        _draw_eye(canvas, anatomy, side)


def _draw_eye(canvas: Canvas, anatomy: Anatomy, side: float) -> None:
    traits = anatomy.traits
    smiling = anatomy.has("Smiling")
    attractive = anatomy.has("Attractive")
    made_up = anatomy.has("Heavy_Makeup")
    width = (0.046 + 0.002 * traits.eye_size) * (1.10 if attractive else 0.96)
    width *= 1.0 + 0.08 * side * anatomy.scene.yaw
    opening = (0.0235 + 0.0015 * traits.eye_size) * (1.12 if attractive else 0.92)
    opening *= 0.40 if anatomy.has("Narrow_Eyes") else (0.92 if smiling else 1.0)
    x = side * anatomy.eye_x + anatomy.turn
    y = 0.007 * side * anatomy.crooked
    tilt = -side * (0.003 + 0.003 * traits.eye_tilt) * _EYE_X
    abscissae = x + width * _EYE_X
    upper = y + tilt - opening * _EYE_ARCH
    lower = y + tilt + opening * (0.62 if smiling else 0.80) * _EYE_ARCH
    if made_up:
        shadow_top = upper - (0.004 + 0.034 * _EYE_ARCH)
        canvas.polygon(band(abscissae, shadow_top, upper), anatomy.scene.eyeshadow, 0.72)
    else:
        lid = upper - 0.014 * _EYE_ARCH
        canvas.polygon(band(abscissae, lid - 0.004, lid), anatomy.shadow, 0.7)
    canvas.polygon(band(abscissae, upper, lower), _EYE_WHITE)
    _draw_iris(canvas, anatomy, abscissae, upper, lower, opening / 0.0235)
    thick = 0.0125 if made_up else (0.0065 if anatomy.has("Male") else 0.0085)
    canvas.polygon(band(abscissae, upper - thick, upper + 0.002), _LINER)
    canvas.polygon(
        band(abscissae, lower, lower + (0.007 if made_up else 0.003)),
        _LINER if made_up else anatomy.shadow,
        0.8,
    )
    if not anatomy.has("Male") or made_up:
        outer = x + side * width
        reach = 0.026 if made_up else 0.013
        wing = np.array(
            [
                [outer - side * 0.020, y - 0.014],
                [outer + side * reach, y - 0.8 * reach],
                [outer - side * 0.004, y + 0.004],
            ]
        )
        canvas.polygon(wing, _LINER)


def _draw_iris(
    canvas: Canvas,
    anatomy: Anatomy,
    abscissae: np.ndarray,
    upper: np.ndarray,
    lower: np.ndarray,
    openness: float,
) -> None:
    x = float(abscissae.mean()) + 0.008 * anatomy.scene.gaze + 0.2 * anatomy.turn
    y = float(upper[6] + lower[6]) / 2.0 - 0.0035
    radius = 0.0225 * (1.08 if anatomy.has("Attractive") else 1.0)
    for size, colour in (
        (radius, shade(anatomy.traits.eye_colour, 0.55)),
        (radius * 0.80, shade(anatomy.traits.eye_colour, 1.15)),
        (radius * 0.42, (12.0, 10.0, 12.0)),
    ):
        disc = ellipse(x, y, size, size)
        disc[:, 1] = np.clip(
            disc[:, 1],
            np.interp(disc[:, 0], abscissae, upper),
            np.interp(disc[:, 0], abscissae, lower),
        )
        canvas.polygon(disc, colour)
    if openness > 0.6:
        canvas.polygon(ellipse(x + 0.007, y - 0.007, 0.0055, 0.0055), _WHITE)


def draw_brows(canvas: Canvas, anatomy: Anatomy) -> None:
    """Draw both brows in the colour of the hair, darkened."""
    colour = mix(shade(anatomy.hair, 0.62), _BROW, 0.35)
    bushy = anatomy.has("Bushy_Eyebrows")
    arched = anatomy.has("Arched_Eyebrows")
    thick = (0.0085 + 0.003 * anatomy.has("Male")) * (2.3 if bushy else 1.0)
    for side in (-1.0, 1.0):
        x = anatomy.turn + side * (anatomy.eye_x - 0.054 + (0.114 + 0.006 * bushy) * _BROW_X)
        y = anatomy.brow_y + 0.005 * side * anatomy.crooked + 0.008 * arched
        middle = y - (0.050 if arched else 0.006) * _BROW_ARCH
        half = thick * _BROW_TAPER
        canvas.polygon(band(x, middle - half, middle + half), colour, 0.95 if bushy else 0.88)
        if bushy:
            for step in range(1, 10, 2):
                tuft = np.array(
                    [
                        [x[step], middle[step]],
                        [x[step] + side * 0.010, middle[step] - half[step] - 0.010],
                    ]
                )
                canvas.line(tuft, 0.007, colour, 0.9)


def draw_nose(canvas: Canvas, anatomy: Anatomy) -> None:
    """Draw the nose by its shadows, light and nostrils."""
    big, pointy = anatomy.has("Big_Nose"), anatomy.has("Pointy_Nose")
    width = (0.037 + 0.003 * anatomy.traits.nose_width) * (1.80 if big else 1.0)
    width *= 0.74 if pointy else 1.0
    x = anatomy.nose_turn + 0.006 * anatomy.crooked
    y = anatomy.nose_y
    side = -1.0 if anatomy.scene.light_side > 0 else 1.0
    bridge = curve(
        [
            (0.5 * x + side * 0.018, -0.030),
            (x + side * 0.020, 0.040),
            (x + side * width, y - 0.005),
            (x, y + 0.008),
            (x + side * 0.004, 0.030),
        ],
        closed=True,
    )
    canvas.polygon(bridge, anatomy.shadow, 0.50)
    canvas.glow(x, y + 0.014, width * 1.45, 0.028, anatomy.shadow, 0.90)
    if pointy:
        _draw_pointed_tip(canvas, anatomy, x, y, width)
    else:
        canvas.polygon(
            ellipse(x, y - 0.010, width * 0.62, 0.021 + 0.006 * big), shade(anatomy.skin, 1.0), 0.9
        )
        canvas.glow(x, y - 0.016, width * 0.65, 0.020, shade(anatomy.skin, 1.16), 0.8)
    for wing in (-1.0, 1.0):
        if not pointy:
            alar = ellipse(x + wing * width * 0.78, y - 0.002, width * 0.34, 0.016 + 0.005 * big)
            canvas.polygon(alar, shade(anatomy.skin, 0.80))
        canvas.polygon(
            ellipse(x + wing * width * 0.46, y + 0.009, width * 0.26, 0.0065),
            shade(anatomy.shadow, 0.42),
            0.92,
        )


def _draw_pointed_tip(canvas: Canvas, anatomy: Anatomy, x: float, y: float, width: float) -> None:
    """A narrow bright bridge that runs into a sharp tip, which hangs below the nostrils."""
    ridge = np.array(
        [
            [x - 0.007, -0.015],
            [x + 0.007, -0.015],
            [x + width * 0.95, y - 0.004],
            [x, y + 0.030],
            [x - width * 0.95, y - 0.004],
        ]
    )
    canvas.polygon(moved(ridge, 0.0, 0.006), shade(anatomy.shadow, 0.62), 0.85)
    canvas.polygon(ridge, shade(anatomy.skin, 1.02))
    canvas.polygon(
        np.array(
            [[x - 0.005, 0.0], [x + 0.005, 0.0], [x + 0.010, y], [x, y + 0.014], [x - 0.010, y]]
        ),
        mix(shade(anatomy.skin, 1.15), _WHITE, 0.35),
        0.85,
    )


def draw_mouth(canvas: Canvas, anatomy: Anatomy) -> None:
    """Draw lips, and teeth where the mouth is open."""
    scene = anatomy.scene
    smiling, big = anatomy.has("Smiling"), anatomy.has("Big_Lips")
    painted = anatomy.has("Wearing_Lipstick")
    open_mouth = anatomy.has("Mouth_Slightly_Open")
    width = (0.068 + 0.004 * anatomy.traits.mouth_width) * (1.06 if big else 1.0)
    width *= 1.0 + 0.26 * scene.smile * smiling - 0.10 * (open_mouth and not smiling)
    lift = 0.042 * scene.smile if smiling else 0.002
    full = (0.0130 + 0.001 * anatomy.traits.lip_fullness) * (2.5 if big else 1.0)
    full *= (1.0 if anatomy.has("Young") else 0.85) * (1.15 if painted else 1.0)
    gap = (0.018 + 0.018 * scene.gap) * open_mouth
    x = anatomy.turn + width * _LIP_X
    line = anatomy.mouth_y + (0.012 if smiling else 0.0) - lift * _LIP_X**2
    line = line - 0.006 * anatomy.crooked * _LIP_X - 0.35 * gap
    bottom = line + gap * _LIP_ARCH
    colour = _lip_colour(anatomy)
    alpha = 1.0 if painted else 0.85
    canvas.glow(
        anatomy.turn, anatomy.mouth_y + full + gap + 0.024, width * 0.7, 0.020, anatomy.shadow, 0.55
    )
    canvas.polygon(band(x, line - full * _CUPID - 0.001, line + 0.002), shade(colour, 0.86), alpha)
    lower = bottom + 1.35 * full * np.sqrt(_LIP_ARCH)
    canvas.polygon(band(x, bottom - 0.001, lower), colour, alpha)
    canvas.glow(
        anatomy.turn,
        float(bottom[8]) + 0.7 * full,
        width * 0.45,
        full * 0.6,
        _WHITE,
        0.50 if painted else 0.22,
    )
    if open_mouth:
        canvas.polygon(band(x, line, bottom), _MOUTH_INSIDE)
        canvas.polygon(
            band(
                x * 0.94 + 0.06 * anatomy.turn,
                line + 0.001,
                line + (0.72 if smiling else 0.34) * gap * _LIP_ARCH,
            ),
            _WHITE,
        )
    else:
        canvas.polygon(
            band(x, line - 0.002, line + 0.004), shade(mix(colour, _MOUTH_INSIDE, 0.6), 0.8), 0.9
        )
    if smiling:
        _draw_smile_lines(canvas, anatomy, width, float(line[0]))


def _lip_colour(anatomy: Anatomy) -> RGB:
    if anatomy.has("Wearing_Lipstick"):
        return anatomy.scene.lipstick
    return mix(shade(anatomy.skin, 0.84), _NATURAL_LIP, 0.32)


def _draw_smile_lines(canvas: Canvas, anatomy: Anatomy, width: float, corner_y: float) -> None:
    for side in (-1.0, 1.0):
        x = anatomy.turn + side * width
        canvas.glow(x + side * 0.008, corner_y, 0.014, 0.018, shade(anatomy.shadow, 0.7), 0.8)
        fold = curve(
            [
                (x - side * 0.024, corner_y - 0.060),
                (x + side * 0.010, corner_y - 0.032),
                (x + side * 0.024, corner_y + 0.014),
            ]
        )
        canvas.line(fold, 0.006, shade(anatomy.shadow, 0.85), 0.6)
