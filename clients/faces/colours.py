# SPDX-License-Identifier: Apache-2.0
"""Colours of drawn faces: palettes and mixing, RGB in [0, 255]."""

__all__ = [
    "EYE_COLOURS",
    "METALS",
    "RGB",
    "hair_colour",
    "mix",
    "shade",
    "skin_colour",
]

RGB = tuple[float, float, float]

_SKINS: tuple[RGB, ...] = (
    (240, 196, 165),
    (230, 180, 145),
    (214, 160, 120),
    (184, 124, 84),
    (138, 88, 58),
    (98, 62, 44),
)
_PALE: RGB = (253, 234, 226)
_PALE_SHARE = 0.75

_HAIRS: dict[str, tuple[RGB, RGB]] = {
    "Black_Hair": ((18, 15, 17), (36, 30, 32)),
    "Blond_Hair": ((205, 165, 92), (236, 208, 140)),
    "Brown_Hair": ((74, 46, 27), (112, 72, 42)),
    "Gray_Hair": ((142, 142, 146), (202, 202, 206)),
}
_AUBURN: tuple[RGB, RGB] = ((112, 36, 20), (184, 84, 38))
_ASH: tuple[RGB, RGB] = ((112, 98, 84), (150, 134, 116))

EYE_COLOURS: tuple[RGB, ...] = (
    (70, 42, 22),
    (96, 62, 32),
    (52, 32, 22),
    (70, 118, 160),
    (84, 128, 92),
    (112, 124, 132),
)
METALS: tuple[RGB, ...] = ((236, 196, 84), (225, 230, 238), (60, 200, 190), (245, 242, 235))


def mix(first: RGB, second: RGB, share: float) -> RGB:
    """Blend two colours; `share` in [0, 1] is the weight of the second."""
    keep = 1.0 - share
    return (
        first[0] * keep + second[0] * share,
        first[1] * keep + second[1] * share,
        first[2] * keep + second[2] * share,
    )


def shade(colour: RGB, factor: float) -> RGB:
    """Scale a colour's brightness; factors above 1 lighten, at most to white."""
    red, green, blue = colour
    return (min(red * factor, 255.0), min(green * factor, 255.0), min(blue * factor, 255.0))


def skin_colour(tone: float, *, pale: bool) -> RGB:
    """Skin of a tone in [0, 1], from fair to dark; `pale` moves it towards porcelain."""
    position = tone * (len(_SKINS) - 1)
    low = min(int(position), len(_SKINS) - 2)
    colour = mix(_SKINS[low], _SKINS[low + 1], position - low)
    return mix(colour, _PALE, _PALE_SHARE) if pale else colour


def hair_colour(present: frozenset[str], tint: float) -> RGB:
    """Colour of the hair; `tint` in [0, 1] goes from the darker to the lighter of its kind."""
    for name, (dark, light) in _HAIRS.items():
        if name in present:
            return mix(dark, light, tint)
    return mix(*_AUBURN, 2.0 * tint) if tint < 0.5 else mix(*_ASH, 2.0 * tint - 1.0)
