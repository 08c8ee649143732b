# SPDX-License-Identifier: Apache-2.0
"""The head without its features: neck, ears, skin, and the marks that age or weight leave on it."""

import numpy as np

from clients.faces.anatomy import Anatomy
from clients.faces.canvas import Canvas, band, curve, ellipse, mirror, moved
from clients.faces.colours import RGB, mix, shade

__all__ = ["draw_ears", "draw_neck", "draw_skin", "draw_skin_marks"]

_ROSE: RGB = (232, 70, 84)
_BRUISE: RGB = (92, 54, 84)
_WHITE: RGB = (255, 255, 255)
_SHADING_STEPS = 7


def draw_neck(canvas: Canvas, anatomy: Anatomy) -> None:
    """Draw neck and the top of the chest, with the chin's shadow on them."""
    male = anatomy.has("Male")
    width = 0.105 + 0.038 * male + 0.022 * anatomy.has("Chubby")
    bottom = 0.433 if male else 0.478
    half = [
        (0.0, 0.15),
        (width, 0.18),
        (width * 0.97, 0.34),
        (width * 1.25, 0.403),
        (width * 0.80, bottom - 0.01),
        (0.0, bottom),
    ]
    canvas.polygon(curve(mirror(half), closed=True), shade(anatomy.skin, 0.86))
    chin = anatomy.chin_y
    canvas.glow(0.0, chin + 0.01, width * 1.15, 0.085, anatomy.shadow, 0.85)
    if anatomy.has("Double_Chin"):
        lobe = curve(
            mirror(
                [
                    (0.0, chin - 0.08),
                    (0.120, chin - 0.06),
                    (0.095, chin + 0.035),
                    (0.0, chin + 0.062),
                ]
            ),
            closed=True,
        )
        canvas.polygon(moved(lobe, 0.0, 0.012), shade(anatomy.shadow, 0.8))
        canvas.polygon(lobe, shade(anatomy.skin, 0.95))
        canvas.glow(0.0, chin + 0.03, 0.08, 0.03, shade(anatomy.skin, 1.08), 0.6)


def draw_ears(canvas: Canvas, anatomy: Anatomy) -> None:
    """Draw both ears; hair may hide them later."""
    for side in (-1.0, 1.0):
        x = side * (anatomy.half_width + 0.008) - anatomy.turn * 0.6
        canvas.polygon(ellipse(x, 0.035, 0.026, 0.056), shade(anatomy.skin, 0.88))
        canvas.polygon(ellipse(x, 0.035, 0.013, 0.036), shade(anatomy.skin, 0.72))


def draw_skin(canvas: Canvas, anatomy: Anatomy) -> None:
    """Draw the skin of the face, shaded softly towards the side away from the light."""
    outline = anatomy.outline
    light = np.array([0.030 * anatomy.scene.light_side, -0.012])
    canvas.polygon(outline, shade(anatomy.skin, 0.80))
    inner = outline[::2]  # Pillow's time grows with the corners; soft borders need fewer
    for step in range(1, _SHADING_STEPS + 1):
        share = step / _SHADING_STEPS
        lit = inner * (1.0 - 0.24 * share) + light * share
        canvas.polygon(lit, shade(anatomy.skin, 0.80 + 0.22 * share))
    if anatomy.has("Double_Chin"):
        x = np.linspace(-0.085, 0.085, 13)
        bow = anatomy.chin_y - 1.6 * x**2
        canvas.polygon(band(x, bow - 0.012, bow + 0.006), shade(anatomy.shadow, 0.85), 0.8)


def draw_skin_marks(canvas: Canvas, anatomy: Anatomy) -> None:
    """Draw cheeks, blemishes, eye bags and wrinkles."""
    _draw_cheeks(canvas, anatomy)
    if anatomy.has("Attractive"):
        _draw_radiance(canvas, anatomy)
    else:
        _draw_blemishes(canvas, anatomy)
    if anatomy.has("Bags_Under_Eyes"):
        _draw_eye_bags(canvas, anatomy)
    if not anatomy.has("Young"):
        _draw_wrinkles(canvas, anatomy)


def _draw_cheeks(canvas: Canvas, anatomy: Anatomy) -> None:
    rosy = anatomy.has("Rosy_Cheeks")
    for side in (-1.0, 1.0):
        x = side * 0.118 + anatomy.turn
        if rosy:
            canvas.glow(x, 0.118, 0.088, 0.070, _ROSE, 0.75)
        if anatomy.has("Chubby"):
            canvas.glow(side * 0.130, 0.175, 0.085, 0.075, shade(anatomy.skin, 1.10), 0.6)
            canvas.glow(side * 0.085, 0.225, 0.030, 0.050, anatomy.shadow, 0.45)
        if anatomy.has("High_Cheekbones"):
            canvas.glow(
                side * 0.135 + anatomy.turn,
                0.070,
                0.070,
                0.038,
                mix(shade(anatomy.skin, 1.3), _WHITE, 0.25),
                0.62,
            )
            for x_hollow, y_hollow in ((0.160, 0.128), (0.128, 0.158)):
                x = side * x_hollow + anatomy.turn
                canvas.glow(x, y_hollow, 0.048, 0.038, shade(anatomy.shadow, 0.85), 0.55)
        elif not anatomy.has("Chubby"):
            canvas.glow(
                side * 0.120 + anatomy.turn, 0.135, 0.070, 0.060, shade(anatomy.skin, 1.06), 0.5
            )


def _draw_radiance(canvas: Canvas, anatomy: Anatomy) -> None:
    """Even skin: a broad light on forehead, nose and chin."""
    glowing = mix(shade(anatomy.skin, 1.12), _WHITE, 0.20)
    canvas.glow(anatomy.turn, -0.140, 0.140, 0.085, glowing, 0.60)
    canvas.glow(anatomy.turn, 0.280, 0.060, 0.035, glowing, 0.50)


def _draw_blemishes(canvas: Canvas, anatomy: Anatomy) -> None:
    """Uneven skin: dull patches and dark spots."""
    dull = mix(anatomy.shadow, (150, 60, 50), 0.35)
    for number, (x, y) in enumerate(anatomy.traits.blemishes):
        canvas.glow(x, y, 0.048, 0.040, dull, 0.36)
        if number % 2:
            canvas.polygon(ellipse(x, y, 0.006, 0.006), shade(dull, 0.85), 0.6)


def _draw_eye_bags(canvas: Canvas, anatomy: Anatomy) -> None:
    tired = mix(anatomy.shadow, _BRUISE, 0.55)
    for side in (-1.0, 1.0):
        x = side * anatomy.eye_x + anatomy.turn
        canvas.glow(x, 0.046, 0.064, 0.034, tired, 0.85)
        arc = np.linspace(-0.046, 0.046, 9)
        lower = 0.058 - 9.0 * arc**2
        canvas.polygon(
            band(x + arc, lower - 0.004, lower + 0.005), shade(anatomy.shadow, 0.7), 0.75
        )


def _draw_wrinkles(canvas: Canvas, anatomy: Anatomy) -> None:
    colour = shade(anatomy.shadow, 0.74)
    x = np.linspace(-0.105, 0.105, 13)
    for level in (-0.175, -0.145, -0.115):
        canvas.line(np.stack([x + anatomy.turn, level + 0.9 * x**2], axis=1), 0.007, colour, 0.62)
    for side in (-1.0, 1.0):
        fold = curve([(side * 0.052, 0.125), (side * 0.088, 0.165), (side * 0.102, 0.235)])
        canvas.line(moved(fold, anatomy.turn, 0.0), 0.009, colour, 0.75)
        canvas.glow(side * 0.125, 0.235, 0.055, 0.050, anatomy.shadow, 0.55)
        corner = side * (anatomy.eye_x + 0.052) + anatomy.turn
        for drop in (-0.020, 0.002, 0.024):
            foot = np.array([[corner, drop * 0.4], [corner + side * 0.036, drop]])
            canvas.line(foot, 0.006, colour, 0.65)
