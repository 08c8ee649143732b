# SPDX-License-Identifier: Apache-2.0
"""The attributes: CelebA's schema, its frequencies, its exclusions and correlations."""

import numpy as np
import pytest

from clients.faces import (
    ATTRIBUTES,
    FREQUENCIES,
    IMAGE_ATTRIBUTES,
    IMAGES_PER_IDENTITY,
    attribute_vector,
    describe_face,
)
from clients.faces.attributes import sample_identity_attributes, sample_image_attributes

CELEBA_ORDER = """5_o_Clock_Shadow Arched_Eyebrows Attractive Bags_Under_Eyes Bald Bangs Big_Lips
Big_Nose Black_Hair Blond_Hair Blurry Brown_Hair Bushy_Eyebrows Chubby Double_Chin Eyeglasses Goatee
Gray_Hair Heavy_Makeup High_Cheekbones Male Mouth_Slightly_Open Mustache Narrow_Eyes No_Beard
Oval_Face Pale_Skin Pointy_Nose Receding_Hairline Rosy_Cheeks Sideburns Smiling Straight_Hair
Wavy_Hair Wearing_Earrings Wearing_Hat Wearing_Lipstick Wearing_Necklace Wearing_Necktie Young"""

PEOPLE = 20_000


@pytest.fixture(scope="module")
def population() -> np.ndarray:
    """Attributes [PEOPLE, 40] of one image each of many identities."""
    draws = np.random.default_rng(0).random((PEOPLE, 4, len(ATTRIBUTES)))
    faces = [
        sample_image_attributes(sample_identity_attributes(own), habits, fresh, follow)
        for own, habits, fresh, follow in draws
    ]
    return np.stack([attribute_vector(face) for face in faces]).astype(bool)


def column(population: np.ndarray, name: str) -> np.ndarray:
    return population[:, ATTRIBUTES.index(name)]


def test_schema_is_celeba_s_in_official_order() -> None:
    assert tuple(CELEBA_ORDER.split()) == ATTRIBUTES
    assert set(ATTRIBUTES) >= IMAGE_ATTRIBUTES


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_frequency_is_near_celeba_s(population: np.ndarray, name: str) -> None:
    assert column(population, name).mean() == pytest.approx(FREQUENCIES[name], abs=0.015)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Black_Hair", "Blond_Hair"),
        ("Black_Hair", "Brown_Hair"),
        ("Blond_Hair", "Gray_Hair"),
        ("Brown_Hair", "Gray_Hair"),
        ("Straight_Hair", "Wavy_Hair"),
        ("No_Beard", "Goatee"),
        ("No_Beard", "Mustache"),
        ("No_Beard", "5_o_Clock_Shadow"),
        ("Bald", "Bangs"),
        ("Bald", "Receding_Hairline"),
        ("Bald", "Brown_Hair"),
        ("Bald", "Wavy_Hair"),
        ("Receding_Hairline", "Bangs"),
        ("Wearing_Hat", "Bangs"),
    ],
)
def test_excluded_pairs_never_meet(population: np.ndarray, first: str, second: str) -> None:
    assert not (column(population, first) & column(population, second)).any()


@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [
        ("Male", "Wearing_Lipstick", -0.9, -0.7),
        ("Male", "Heavy_Makeup", -0.8, -0.55),
        ("Male", "No_Beard", -0.7, -0.4),
        ("Male", "Wearing_Necktie", 0.2, 0.45),
        ("Male", "Young", -0.4, -0.2),
        ("Young", "Gray_Hair", -0.5, -0.25),
        ("Smiling", "High_Cheekbones", 0.55, 0.75),
        ("Smiling", "Mouth_Slightly_Open", 0.4, 0.65),
        ("Chubby", "Double_Chin", 0.35, 0.65),
        ("Heavy_Makeup", "Wearing_Lipstick", 0.7, 0.9),
    ],
)
def test_correlations_resemble_celeba_s(
    population: np.ndarray, first: str, second: str, low: float, high: float
) -> None:
    correlation = np.corrcoef(column(population, first), column(population, second))[0, 1]
    assert low < correlation < high


def test_images_of_an_identity_share_what_lasts_and_vary_in_what_does_not() -> None:
    varied: set[str] = set()
    for identity in range(20):
        first = identity * IMAGES_PER_IDENTITY
        faces = [describe_face(first + image) for image in range(IMAGES_PER_IDENTITY)]
        assert {face.identity for face in faces} == {identity}
        assert len({face.attributes - IMAGE_ATTRIBUTES for face in faces}) == 1
        assert len({face.traits for face in faces}) == 1
        assert len({face.scene for face in faces}) == IMAGES_PER_IDENTITY
        present = [face.attributes for face in faces]
        varied |= frozenset.union(*present) - frozenset.intersection(*present)
    assert {"Smiling", "Mouth_Slightly_Open", "Wearing_Hat", "Eyeglasses", "Blurry"} <= varied
