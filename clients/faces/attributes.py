# SPDX-License-Identifier: Apache-2.0
"""CelebA's 40 attributes: their official order, their frequencies and a sampler of both levels.

A face has attributes of its identity (sex, age, hair colour, shape of the nose, ...) and attributes
of one photograph of it (smile, hat, glasses, ...). Both are sampled along a small conditional
model: first sex and age, then everything else given these and a few direct parents, so that the
marginal frequencies and the strongest correlations resemble those of CelebA (Liu et al., ICCV
2015).
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

__all__ = [
    "ATTRIBUTES",
    "FREQUENCIES",
    "IMAGE_ATTRIBUTES",
    "attribute_vector",
    "sample_identity_attributes",
    "sample_image_attributes",
]

FREQUENCIES: Mapping[str, float] = MappingProxyType(
    {
        "5_o_Clock_Shadow": 0.111,
        "Arched_Eyebrows": 0.267,
        "Attractive": 0.513,
        "Bags_Under_Eyes": 0.205,
        "Bald": 0.022,
        "Bangs": 0.152,
        "Big_Lips": 0.241,
        "Big_Nose": 0.235,
        "Black_Hair": 0.239,
        "Blond_Hair": 0.148,
        "Blurry": 0.051,
        "Brown_Hair": 0.205,
        "Bushy_Eyebrows": 0.142,
        "Chubby": 0.058,
        "Double_Chin": 0.047,
        "Eyeglasses": 0.065,
        "Goatee": 0.063,
        "Gray_Hair": 0.042,
        "Heavy_Makeup": 0.387,
        "High_Cheekbones": 0.455,
        "Male": 0.417,
        "Mouth_Slightly_Open": 0.483,
        "Mustache": 0.042,
        "Narrow_Eyes": 0.115,
        "No_Beard": 0.835,
        "Oval_Face": 0.284,
        "Pale_Skin": 0.043,
        "Pointy_Nose": 0.277,
        "Receding_Hairline": 0.080,
        "Rosy_Cheeks": 0.066,
        "Sideburns": 0.057,
        "Smiling": 0.482,
        "Straight_Hair": 0.208,
        "Wavy_Hair": 0.320,
        "Wearing_Earrings": 0.189,
        "Wearing_Hat": 0.048,
        "Wearing_Lipstick": 0.472,
        "Wearing_Necklace": 0.123,
        "Wearing_Necktie": 0.073,
        "Young": 0.774,
    }
)
"""Share of CelebA's 202,599 images with each attribute, in CelebA's order."""

ATTRIBUTES: tuple[str, ...] = tuple(FREQUENCIES)
"""CelebA's 40 attribute names in official order."""

IMAGE_ATTRIBUTES: frozenset[str] = frozenset(
    {
        "Bangs",
        "Blurry",
        "Eyeglasses",
        "Heavy_Makeup",
        "High_Cheekbones",
        "Mouth_Slightly_Open",
        "Rosy_Cheeks",
        "Smiling",
        "Wearing_Earrings",
        "Wearing_Hat",
        "Wearing_Lipstick",
        "Wearing_Necklace",
        "Wearing_Necktie",
    }
)
"""Attributes sampled anew for each image; the others belong to the identity."""

_INDEX = {name: column for column, name in enumerate(ATTRIBUTES)}

_HABITUAL = frozenset(
    {
        "Bangs",
        "Eyeglasses",
        "Heavy_Makeup",
        "Wearing_Earrings",
        "Wearing_Lipstick",
        "Wearing_Necklace",
        "Wearing_Necktie",
    }
)
_HABIT = 0.5  # how often an image follows the identity's own habit instead of a fresh draw

_YOUNG_FEMALE = 0.87
_YOUNG_MALE = 0.64

# P(attribute | group) for (young female, older female, young male, older male).
_GROUPS: Mapping[str, tuple[float, float, float, float]] = {
    "Arched_Eyebrows": (0.430, 0.320, 0.075, 0.030),
    "Attractive": (0.765, 0.220, 0.370, 0.050),
    "Bags_Under_Eyes": (0.080, 0.220, 0.320, 0.410),
    "Bald": (0.000, 0.000, 0.020, 0.115),
    "Bangs": (0.226, 0.170, 0.122, 0.065),
    "Beard": (0.000, 0.000, 0.390, 0.405),
    "Big_Lips": (0.300, 0.150, 0.205, 0.155),
    "Big_Nose": (0.090, 0.200, 0.360, 0.520),
    "Bushy_Eyebrows": (0.075, 0.040, 0.260, 0.210),
    "Chubby": (0.015, 0.090, 0.065, 0.170),
    "Double_Chin": (0.009, 0.045, 0.020, 0.060),
    "Eyeglasses": (0.015, 0.060, 0.080, 0.210),
    "Narrow_Eyes": (0.105, 0.100, 0.130, 0.135),
    "Oval_Face": (0.352, 0.235, 0.230, 0.240),
    "Pale_Skin": (0.058, 0.035, 0.030, 0.018),
    "Pointy_Nose": (0.370, 0.290, 0.185, 0.125),
    "Receding_Hairline": (0.020, 0.080, 0.092, 0.295),
    "Wearing_Earrings": (0.330, 0.270, 0.006, 0.005),
    "Wearing_Hat": (0.030, 0.030, 0.085, 0.060),
    "Wearing_Necklace": (0.203, 0.215, 0.012, 0.004),
    "Wearing_Necktie": (0.001, 0.004, 0.113, 0.280),
}

# P(colour | group) of a head with hair; the rest has another colour, which CelebA does not name.
_HAIR_COLOURS: Mapping[str, tuple[float, float, float, float]] = {
    "Black_Hair": (0.232, 0.140, 0.330, 0.200),
    "Blond_Hair": (0.247, 0.220, 0.020, 0.010),
    "Brown_Hair": (0.257, 0.180, 0.190, 0.090),
    "Gray_Hair": (0.002, 0.100, 0.003, 0.240),
}

# P(texture | group) of a head with hair; the rest is neither clearly straight nor clearly wavy.
_HAIR_TEXTURES: Mapping[str, tuple[float, float, float, float]] = {
    "Straight_Hair": (0.200, 0.150, 0.260, 0.215),
    "Wavy_Hair": (0.470, 0.400, 0.140, 0.105),
}

_Toss = Callable[[str, float], bool]


def attribute_vector(present: frozenset[str]) -> np.ndarray:
    """Encode a set of attribute names in CelebA's order.

    Parameters
    ----------
    present : frozenset of str
        Names of the attributes that the face has.

    Returns
    -------
    numpy.ndarray
        uint8, shape [40], 1 where the attribute is present.
    """
    return np.fromiter((name in present for name in ATTRIBUTES), np.uint8, len(ATTRIBUTES))


def sample_identity_attributes(uniforms: np.ndarray) -> frozenset[str]:
    """Sample the attributes that all images of one identity share.

    Parameters
    ----------
    uniforms : numpy.ndarray
        float, shape [40], independent uniform draws in [0, 1), one for each attribute.

    Returns
    -------
    frozenset of str
        Names of the attributes present, a subset of `ATTRIBUTES` without `IMAGE_ATTRIBUTES`.
    """
    present: set[str] = set()
    toss = _tosser(uniforms, present)
    male = toss("Male", FREQUENCIES["Male"])
    toss("Young", _YOUNG_MALE if male else _YOUNG_FEMALE)
    group = _group(present)
    for name in (
        "Arched_Eyebrows",
        "Attractive",
        "Bags_Under_Eyes",
        "Big_Lips",
        "Big_Nose",
        "Bushy_Eyebrows",
        "Narrow_Eyes",
        "Pale_Skin",
        "Pointy_Nose",
    ):
        toss(name, _GROUPS[name][group])
    chubby = toss("Chubby", _GROUPS["Chubby"][group])
    toss("Double_Chin", 0.48 if chubby else _GROUPS["Double_Chin"][group])
    toss("Oval_Face", 0.05 if chubby else _GROUPS["Oval_Face"][group])
    _sample_scalp(toss, uniforms, present, group)
    _sample_beard(toss, present, group)
    return frozenset(present)


def sample_image_attributes(
    identity: frozenset[str], habits: np.ndarray, uniforms: np.ndarray, follow: np.ndarray
) -> frozenset[str]:
    """Sample the attributes of one image of an identity.

    Parameters
    ----------
    identity : frozenset of str
        Attributes of the identity.
    habits, uniforms : numpy.ndarray
        float, shape [40], uniform draws in [0, 1) of the identity and of the image.
    follow : numpy.ndarray
        float, shape [40], uniform draws in [0, 1) that decide, for what a person wears, whether
        the image follows the identity's habit. The marginal frequencies stay as they are.

    Returns
    -------
    frozenset of str
        All attributes of the image, those of the identity included.
    """
    mixed = np.where((follow < _HABIT) & _HABITUAL_MASK, habits, uniforms)
    present = set(identity)
    toss = _tosser(mixed, present)
    group = _group(present)
    male = "Male" in present
    for name in (
        "Eyeglasses",
        "Wearing_Earrings",
        "Wearing_Hat",
        "Wearing_Necklace",
        "Wearing_Necktie",
    ):
        toss(name, _GROUPS[name][group])
    if present.isdisjoint({"Bald", "Receding_Hairline", "Wearing_Hat"}):
        toss("Bangs", _GROUPS["Bangs"][group])
    toss("Blurry", FREQUENCIES["Blurry"])
    _sample_makeup(toss, present, group)
    smiling = toss("Smiling", 0.40 if male else 0.54)
    toss("Mouth_Slightly_Open", 0.76 if smiling else 0.225)
    toss("High_Cheekbones", (0.70 if male else 0.85) if smiling else (0.055 if male else 0.20))
    return frozenset(present)


_HABITUAL_MASK = attribute_vector(_HABITUAL).astype(bool)


def _tosser(uniforms: np.ndarray, present: set[str]) -> _Toss:
    """Return a coin for each attribute that records its name in `present` on success."""

    def toss(name: str, probability: float) -> bool:
        hit = bool(uniforms[_INDEX[name]] < probability)
        if hit:
            present.add(name)
        return hit

    return toss


def _group(present: set[str]) -> int:
    """Column of the group tables: young female, older female, young male, older male."""
    return 2 * ("Male" in present) + ("Young" not in present)


def _sample_scalp(toss: _Toss, uniforms: np.ndarray, present: set[str], group: int) -> None:
    if toss("Bald", _GROUPS["Bald"][group]):
        return
    toss("Receding_Hairline", _GROUPS["Receding_Hairline"][group])
    for table, draw in (
        (_HAIR_COLOURS, uniforms[_INDEX["Black_Hair"]]),
        (_HAIR_TEXTURES, uniforms[_INDEX["Wavy_Hair"]]),
    ):
        present.update(_choose(table, group, float(draw)))


def _choose(
    table: Mapping[str, tuple[float, float, float, float]], group: int, draw: float
) -> tuple[str, ...]:
    """Pick at most one name of a table, so that its names exclude one another."""
    upper = 0.0
    for name, probabilities in table.items():
        upper += probabilities[group]
        if draw < upper:
            return (name,)
    return ()


def _sample_beard(toss: _Toss, present: set[str], group: int) -> None:
    bearded = not toss("No_Beard", 1.0 - _GROUPS["Beard"][group])
    if "Male" in present and "Bald" not in present:
        toss("Sideburns", 0.33 if bearded else 0.02)
    if not bearded:
        return
    shadow = toss("5_o_Clock_Shadow", 0.673)
    goatee = toss("Goatee", 0.25 if shadow else 0.65)
    toss("Mustache", 0.45 if goatee else 0.13)


def _sample_makeup(toss: _Toss, present: set[str], group: int) -> None:
    if "Male" in present:
        toss("Heavy_Makeup", 0.002)
        toss("Wearing_Lipstick", 0.007)
        toss("Rosy_Cheeks", 0.003)
        return
    young = "Young" in present
    made_up = toss("Heavy_Makeup", (0.80 if "Attractive" in present else 0.46) if young else 0.30)
    toss("Wearing_Lipstick", 0.97 if made_up else 0.46)
    toss("Rosy_Cheeks", 0.15 if made_up else 0.03)
