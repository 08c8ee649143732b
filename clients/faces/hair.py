# SPDX-License-Identifier: Apache-2.0
"""Hair of the head and hats over it."""

import numpy as np

from clients.faces.anatomy import Anatomy
from clients.faces.canvas import Canvas, curve, ellipse, mirror, moved
from clients.faces.colours import RGB, mix, shade

__all__ = ["draw_back_hair", "draw_front_hair", "draw_hat"]

_WHITE: RGB = (255, 255, 255)
_ARC = np.linspace(np.pi, 0.0, 41)  # from the left temple over the crown to the right one
_ARC_COS, _ARC_SIN = np.cos(_ARC), np.sin(_ARC)
_CURLS = np.abs(np.sin(6.5 * _ARC))
_FALL = np.linspace(0.0, 1.0, 25)
_LOCKS = 0.5 - 0.5 * np.cos(_FALL * 2.0 * np.pi * 4.0)
_WAVE = 0.022  # height of a curl; less does not survive at 32 px


def draw_back_hair(canvas: Canvas, anatomy: Anatomy) -> None:
    """Draw the hair that falls behind face and neck; only women of this data set wear it long."""
    if not _is_long(anatomy):
        return
    outer = _side_profile(anatomy)
    length = _length(anatomy)
    y = -0.10 + (length + 0.10) * _FALL
    right = np.stack([outer, y], axis=1)
    points = np.concatenate([right * (-1.0, 1.0), right[::-1]])
    canvas.polygon(points, shade(anatomy.hair, 0.72))


def draw_front_hair(canvas: Canvas, anatomy: Anatomy) -> None:
    """Draw the hair over the forehead and beside the face, or the shine of a bald head."""
    if anatomy.has("Bald"):
        _draw_bald_head(canvas, anatomy)
        return
    canvas.polygon(np.concatenate([_crown(anatomy), _hairline(anatomy)]), anatomy.hair)
    _draw_shine(canvas, anatomy)
    if _is_long(anatomy):
        _draw_side_locks(canvas, anatomy)
    if anatomy.has("Bangs"):
        _draw_bangs(canvas, anatomy)
    if anatomy.has("Straight_Hair") or anatomy.has("Wavy_Hair"):
        _draw_crown_strands(canvas, anatomy)


def draw_hat(canvas: Canvas, anatomy: Anatomy) -> None:
    """Draw a beanie, a cap or a brimmed hat."""
    colour = anatomy.scene.hat
    rim = anatomy.half_width + 0.035
    style = int(anatomy.scene.hat_style * 3.0)
    brow = -0.140
    dome = curve(mirror([(0.0, -0.400), (rim * 0.70, -0.365), (rim, -0.230), (rim, brow)]))
    canvas.polygon(dome, shade(colour, 0.92))
    canvas.glow(0.05 * anatomy.scene.light_side, -0.30, 0.14, 0.09, mix(colour, _WHITE, 0.4), 0.55)
    if style == 0:
        fold = curve(
            mirror(
                [
                    (0.0, -0.245),
                    (rim * 0.9, -0.225),
                    (rim + 0.012, -0.160),
                    (rim * 0.95, -0.118),
                    (0.0, -0.150),
                ]
            ),
            closed=True,
        )
        canvas.polygon(fold, mix(colour, _WHITE, 0.30))
    elif style == 1:
        visor = curve(
            mirror([(0.0, -0.215), (rim * 0.95, -0.185), (rim * 0.92, -0.120), (0.0, -0.140)]),
            closed=True,
        )
        canvas.polygon(moved(visor, 0.0, 0.010), shade(anatomy.shadow, 0.6), 0.6)
        canvas.polygon(visor, shade(colour, 0.62))
    else:
        canvas.polygon(ellipse(0.0, -0.150, 0.370, 0.048), shade(colour, 0.70))
        canvas.polygon(ellipse(0.0, -0.165, 0.360, 0.036), shade(colour, 0.95))
        ribbon = curve(
            mirror([(0.0, -0.225), (rim, -0.215), (rim, -0.165), (0.0, -0.150)]), closed=True
        )
        canvas.polygon(ribbon, shade(colour, 0.45))


def _is_long(anatomy: Anatomy) -> bool:
    return not anatomy.has("Male") and not anatomy.has("Bald")


def _length(anatomy: Anatomy) -> float:
    """How far down the hair falls: from the chin to below the picture."""
    return 0.28 + 0.30 * anatomy.traits.hair_length


def _side_profile(anatomy: Anatomy) -> np.ndarray:
    """Distance [25] of long hair's border from the middle, from the temple down."""
    base = anatomy.half_width + 0.040
    if anatomy.has("Wavy_Hair"):
        return base + 0.020 + 0.035 * _FALL + 2.0 * _WAVE * _LOCKS
    if anatomy.has("Straight_Hair"):
        return base + 0.012 * _FALL
    profile: np.ndarray = (
        base + 0.030 * np.sin(np.pi * _FALL) - 0.10 * np.maximum(_FALL - 0.75, 0.0)
    )
    return profile


def _crown(anatomy: Anatomy) -> np.ndarray:
    """Outer border [41, 2] of the hair on the skull, from left to right."""
    long = _is_long(anatomy)
    volume = 0.040 if long else 0.018
    height = 0.315 if long else 0.300
    base_y = -0.060 if long else -0.020
    swell = 1.0 + (_WAVE / 0.2) * _CURLS if anatomy.has("Wavy_Hair") else 1.0
    x = (anatomy.half_width + volume) * _ARC_COS * swell
    y = base_y - (height + base_y + 0.035) * _ARC_SIN * swell
    return np.stack([x, y], axis=1)


def _hairline(anatomy: Anatomy) -> np.ndarray:
    """Inner border of the hair on the skull, from right to left."""
    half, part = anatomy.half_width, 0.09 * anatomy.traits.parting
    if anatomy.has("Receding_Hairline"):
        points = [
            (half * 0.99, -0.030),
            (half * 0.93, -0.150),
            (half * 0.60, -0.262),
            (half * 0.22, -0.250),
            (0.0, -0.238),
            (-half * 0.22, -0.250),
            (-half * 0.60, -0.262),
            (-half * 0.93, -0.150),
            (-half * 0.99, -0.030),
        ]
    elif _is_long(anatomy):
        points = [
            (half * 1.0, 0.0),
            (half * 0.90, -0.120),
            (half * 0.55 + part * 0.5, -0.195),
            (part, -0.232),
            (-half * 0.55 + part * 0.5, -0.195),
            (-half * 0.90, -0.120),
            (-half * 1.0, 0.0),
        ]
    else:
        points = [
            (half * 0.99, -0.020),
            (half * 0.92, -0.100),
            (half * 0.80, -0.185),
            (part, -0.205),
            (-half * 0.80, -0.185),
            (-half * 0.92, -0.100),
            (-half * 0.99, -0.020),
        ]
    return curve(points)


def _draw_shine(canvas: Canvas, anatomy: Anatomy) -> None:
    light = mix(shade(anatomy.hair, 1.35), _WHITE, 0.10)
    canvas.glow(0.07 * anatomy.scene.light_side, -0.262, 0.130, 0.045, light, 0.55)


def _draw_bald_head(canvas: Canvas, anatomy: Anatomy) -> None:
    canvas.glow(0.05 * anatomy.scene.light_side + anatomy.turn, -0.215, 0.095, 0.055, _WHITE, 0.65)


def _draw_side_locks(canvas: Canvas, anatomy: Anatomy) -> None:
    """Hair that frames the face, before ears and cheeks."""
    half = anatomy.half_width
    outer = _side_profile(anatomy)
    bottom = min(_length(anatomy), 0.36)
    y = -0.12 + (bottom + 0.12) * _FALL
    span = (bottom + 0.12) / (_length(anatomy) + 0.10)
    border = np.interp(_FALL * span, _FALL, outer)
    wavy, straight = anatomy.has("Wavy_Hair"), anatomy.has("Straight_Hair")
    inner = half * 0.93 + 0.035 * _FALL + (0.6 * _WAVE * _LOCKS if wavy else 0.0)
    inner = np.minimum(inner, border)
    for side in (-1.0, 1.0):
        points = np.concatenate(
            [np.stack([side * border, y], axis=1), np.stack([side * inner, y], axis=1)[::-1]]
        )
        canvas.polygon(points, shade(anatomy.hair, 0.92))
        if not (wavy or straight):
            continue
        for share, tone in ((0.30, 1.45), (0.65, 0.60)):
            x = inner + (border - inner) * share
            canvas.line(np.stack([side * x, y], axis=1), 0.009, _strand(anatomy, tone), 0.75)


def _draw_bangs(canvas: Canvas, anatomy: Anatomy) -> None:
    """A fringe down to the brows with a jagged end."""
    half = anatomy.half_width
    teeth = np.linspace(half * 0.95, -half * 0.95, 11)
    ends = -0.088 + 0.022 * (np.arange(11) % 2) - 0.020 * (teeth / half) ** 2
    fringe = np.concatenate(
        [
            [
                (-half * 0.96, -0.18),
                (-half * 0.6, -0.27),
                (half * 0.6, -0.27),
                (half * 0.96, -0.18),
            ],
            np.stack([teeth, ends], axis=1),
        ]
    )
    canvas.polygon(fringe, shade(anatomy.hair, 0.90))
    for x in (-0.11, -0.055, 0.0, 0.055, 0.11):
        canvas.line(
            np.array([[x * 0.7, -0.255], [x, -0.105]]), 0.006, shade(anatomy.hair, 0.62), 0.7
        )


def _draw_crown_strands(canvas: Canvas, anatomy: Anatomy) -> None:
    """Strands from the parting outwards: lines on straight hair, curls on wavy hair."""
    part = 0.09 * anatomy.traits.parting
    high = -0.225 if anatomy.has("Receding_Hairline") else -0.195
    wavy = anatomy.has("Wavy_Hair")
    along = _FALL if wavy else _FALL[::6]
    for number, reach in enumerate((-0.92, -0.66, -0.36, 0.36, 0.66, 0.92)):
        end_y = high + 0.10 * (abs(reach) - 0.36)
        x = part + (anatomy.half_width * reach - part) * along
        y = -0.318 + (end_y + 0.318) * along**1.5
        if wavy:
            x = x + 0.014 * np.sin(along * 15.0)
            y = y + 0.014 * np.cos(along * 15.0)
        tone = _strand(anatomy, 1.5 if number % 2 else 0.55)
        canvas.line(np.stack([x, y], axis=1), 0.008, tone, 0.75)


def _strand(anatomy: Anatomy, tone: float) -> RGB:
    """A strand lighter or darker than the hair, also where the hair is black."""
    return mix(shade(anatomy.hair, tone), _WHITE, 0.14) if tone > 1.0 else shade(anatomy.hair, tone)
