# SPDX-License-Identifier: Apache-2.0
"""Each attribute shows: switching it, all else equal, changes the picture where it should."""

from dataclasses import replace

import numpy as np
import pytest

from clients.faces import ATTRIBUTES, FaceDescription, describe_face, draw_face

SIZE = 64
SAMPLES = 4

# A change that a person sees: a step in colour over a few pixels.
STEP = 16
PIXELS = 12
SHARE_IN_REGION = 0.8

WOMAN = frozenset({"Young", "No_Beard"})
MAN = WOMAN | {"Male"}
MALE_BASE = {
    "5_o_Clock_Shadow",
    "Bald",
    "Goatee",
    "Mustache",
    "No_Beard",
    "Receding_Hairline",
    "Sideburns",
    "Wearing_Necktie",
}

# Where it shows: (top, bottom, left, right) in shares of the picture.
ALL = (0.0, 1.0, 0.0, 1.0)
HEAD = (0.0, 0.98, 0.1, 0.9)
SCALP = (0.0, 0.50, 0.1, 0.9)
EYES = (0.28, 0.58, 0.2, 0.8)
NOSE = (0.38, 0.68, 0.35, 0.65)
MOUTH = (0.52, 0.82, 0.28, 0.72)
CHEEKS = (0.40, 0.75, 0.2, 0.8)
JAW = (0.45, 0.90, 0.2, 0.8)
THROAT = (0.72, 1.0, 0.0, 1.0)
REGIONS = {
    "5_o_Clock_Shadow": JAW,
    "Arched_Eyebrows": EYES,
    "Attractive": HEAD,
    "Bags_Under_Eyes": EYES,
    "Bald": HEAD,
    "Bangs": SCALP,
    "Big_Lips": MOUTH,
    "Big_Nose": NOSE,
    "Black_Hair": HEAD,
    "Blond_Hair": HEAD,
    "Blurry": ALL,
    "Brown_Hair": HEAD,
    "Bushy_Eyebrows": EYES,
    "Chubby": HEAD,
    "Double_Chin": (0.7, 0.95, 0.2, 0.8),
    "Eyeglasses": EYES,
    "Goatee": (0.62, 0.90, 0.3, 0.7),
    "Gray_Hair": HEAD,
    "Heavy_Makeup": EYES,
    "High_Cheekbones": CHEEKS,
    "Male": ALL,
    "Mouth_Slightly_Open": MOUTH,
    "Mustache": MOUTH,
    "Narrow_Eyes": EYES,
    "No_Beard": JAW,
    "Oval_Face": HEAD,
    "Pale_Skin": HEAD,
    "Pointy_Nose": NOSE,
    "Receding_Hairline": SCALP,
    "Rosy_Cheeks": CHEEKS,
    "Sideburns": (0.3, 0.7, 0.15, 0.85),
    "Smiling": (0.35, 0.82, 0.2, 0.8),
    "Straight_Hair": HEAD,
    "Wavy_Hair": HEAD,
    "Wearing_Earrings": (0.45, 0.75, 0.15, 0.85),
    "Wearing_Hat": (0.0, 0.45, 0.0, 1.0),
    "Wearing_Lipstick": MOUTH,
    "Wearing_Necklace": THROAT,
    "Wearing_Necktie": THROAT,
    "Young": (0.15, 0.85, 0.2, 0.8),
}


def plain_face(name: str, sample: int) -> FaceDescription:
    """A face of some identity on which nothing hides the attribute."""
    base = MAN if name in MALE_BASE else WOMAN
    return replace(describe_face(10 * sample, seed=1), attributes=base)


def test_regions_cover_the_schema() -> None:
    assert set(REGIONS) == set(ATTRIBUTES)


@pytest.mark.parametrize("sample", range(SAMPLES))
@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attribute_shows_in_its_region(name: str, sample: int) -> None:
    face = plain_face(name, sample)
    before = draw_face(face, SIZE).astype(int)
    after = draw_face(face.toggled(name), SIZE).astype(int)
    change = np.abs(after - before).max(axis=2)
    top, bottom, left, right = (round(share * SIZE) for share in REGIONS[name])
    inside = change[top:bottom, left:right]
    assert (inside >= STEP).sum() >= PIXELS
    assert inside.sum() >= SHARE_IN_REGION * change.sum()


def test_toggling_twice_gives_the_face_back() -> None:
    face = describe_face(0)
    assert face.toggled("Smiling") != face
    assert face.toggled("Smiling").toggled("Smiling") == face
