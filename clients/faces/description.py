# SPDX-License-Identifier: Apache-2.0
"""What is drawn: one frozen description for each face, sampled from a seed and an index."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from clients.faces.attributes import (
    ATTRIBUTES,
    sample_identity_attributes,
    sample_image_attributes,
)
from clients.faces.colours import EYE_COLOURS, METALS, RGB

__all__ = [
    "IMAGES_PER_IDENTITY",
    "FaceDescription",
    "Scene",
    "Traits",
    "describe_face",
    "require_natural",
]

IMAGES_PER_IDENTITY = 10
"""Images 10 k to 10 k + 9 of a data set show identity k."""

_BLEMISHES = 7

_IDENTITY_STREAM = 1
_IMAGE_STREAM = 2

_LIPSTICKS: tuple[RGB, ...] = ((196, 18, 48), (214, 40, 98), (178, 16, 64), (224, 62, 62))
_EYESHADOWS: tuple[RGB, ...] = ((88, 62, 120), (70, 52, 52), (52, 96, 130), (128, 60, 92))
_CLOTHS: tuple[RGB, ...] = (
    (38, 44, 60),
    (120, 34, 44),
    (58, 92, 84),
    (208, 200, 188),
    (70, 96, 150),
    (140, 110, 150),
    (60, 58, 56),
    (190, 140, 80),
)
_TIES: tuple[RGB, ...] = ((150, 24, 36), (28, 50, 120), (40, 100, 70), (200, 150, 40), (60, 30, 80))
_BACKDROPS: tuple[RGB, ...] = (
    (150, 166, 178),
    (92, 108, 118),
    (196, 188, 172),
    (120, 140, 110),
    (168, 128, 116),
    (74, 76, 92),
    (214, 218, 222),
    (104, 88, 78),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Traits:
    """Body of an identity, the same in all its images.

    Lengths are deviations from the average face in standard units, clipped to [-1.5, 1.5];
    positions of blemishes are (x, y) in face units, see `clients.faces.anatomy`.
    """

    face_width: float
    face_length: float
    jaw_width: float
    eye_spacing: float
    eye_size: float
    eye_tilt: float
    brow_height: float
    nose_length: float
    nose_width: float
    mouth_width: float
    lip_fullness: float
    asymmetry: float
    skin_tone: float
    eye_colour: RGB
    hair_tint: float
    hair_length: float
    parting: float
    blemishes: tuple[tuple[float, float], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Scene:
    """Pose, light and belongings of one image.

    Shifts are shares of the image width, `roll` is in radians, `yaw` and `light_side` in [-1, 1],
    `smile` and `gap` the strengths in [0, 1] of a smile and of an open mouth if there are any;
    styles are in [0, 1) and cut into kinds by whoever draws them.
    """

    shift: tuple[float, float]
    scale: float
    roll: float
    yaw: float
    light_side: float
    brightness: float
    warmth: float
    gaze: float
    smile: float
    gap: float
    backdrop: tuple[RGB, RGB, RGB, RGB]
    cloth: RGB
    tie: RGB
    hat: RGB
    lipstick: RGB
    eyeshadow: RGB
    metal: RGB
    hat_style: float
    glasses_style: float
    jewel_style: float


@dataclass(frozen=True, kw_only=True, slots=True)
class FaceDescription:
    """Everything that decides the pixels of a face.

    Attributes
    ----------
    identity : int
        Number of the person in the data set.
    attributes : frozenset of str
        Names of the attributes present, out of `clients.faces.ATTRIBUTES`.
    traits : Traits
        The person's body.
    scene : Scene
        The image's pose, light and belongings.
    """

    identity: int
    attributes: frozenset[str]
    traits: Traits
    scene: Scene

    def toggled(self, name: str) -> Self:
        """Return the same face and scene with one attribute switched on or off.

        Raises
        ------
        ValueError
            If `name` is none of the 40 attributes.
        """
        if name not in ATTRIBUTES:
            raise ValueError(f"name: got {name!r}, allowed is one of {', '.join(ATTRIBUTES)}")
        return replace(self, attributes=self.attributes ^ {name})


def require_natural(field: str, value: int) -> None:
    """Check a number that may not be negative.

    Raises
    ------
    ValueError
        If `value` is negative; the message names `field`.
    """
    if value < 0:
        raise ValueError(f"{field}: got {value}, allowed is 0 or more")


def describe_face(index: int, seed: int = 0) -> FaceDescription:
    """Describe image `index` of the data set `seed`; depends on these two numbers only.

    Parameters
    ----------
    index : int
        Number of the image, 0 or more.
    seed : int
        Number of the data set, 0 or more.

    Raises
    ------
    ValueError
        If `index` or `seed` is negative.
    """
    require_natural("index", index)
    require_natural("seed", seed)
    identity = int(index) // IMAGES_PER_IDENTITY
    person = np.random.default_rng(np.random.SeedSequence((seed, _IDENTITY_STREAM, identity)))
    photo = np.random.default_rng(np.random.SeedSequence((seed, _IMAGE_STREAM, index)))
    own, habits = person.random((2, len(ATTRIBUTES)))
    fresh, follow = photo.random((2, len(ATTRIBUTES)))
    lasting = sample_identity_attributes(own)
    return FaceDescription(
        identity=identity,
        attributes=sample_image_attributes(lasting, habits, fresh, follow),
        traits=_sample_traits(person, lasting),
        scene=_sample_scene(photo),
    )


def _sample_traits(rng: np.random.Generator, lasting: frozenset[str]) -> Traits:
    shape = np.clip(rng.standard_normal(12), -1.5, 1.5).tolist()
    tone, tint, length, parting, eye = rng.random(5).tolist()
    spots = (rng.random((_BLEMISHES, 2)) * (0.26, 0.30) - (0.13, 0.04)).tolist()
    return Traits(
        face_width=shape[0],
        face_length=shape[1],
        jaw_width=shape[2],
        eye_spacing=shape[3],
        eye_size=shape[4],
        eye_tilt=shape[5],
        brow_height=shape[6],
        nose_length=shape[7],
        nose_width=shape[8],
        mouth_width=shape[9],
        lip_fullness=shape[10],
        asymmetry=1.0 if shape[11] > 0 else -1.0,
        skin_tone=_skin_tone(tone, lasting),
        eye_colour=_eye_colour(eye, lasting),
        hair_tint=tint,
        hair_length=length,
        parting=2.0 * parting - 1.0,
        blemishes=tuple((x, y) for x, y in spots),
    )


def _skin_tone(draw: float, lasting: frozenset[str]) -> float:
    """Fair tones are the most frequent; black hair goes with the whole range."""
    if "Black_Hair" in lasting:
        return float(draw)
    return float(draw**2 * (0.45 if "Blond_Hair" in lasting else 0.7))


def _eye_colour(draw: float, lasting: frozenset[str]) -> RGB:
    """Black hair goes with the brown half of the palette."""
    kinds = len(EYE_COLOURS) // 2 if "Black_Hair" in lasting else len(EYE_COLOURS)
    return EYE_COLOURS[int(draw * kinds)]


def _pick(palette: tuple[RGB, ...], draw: float) -> RGB:
    return palette[int(draw * len(palette))]


def _sample_scene(rng: np.random.Generator) -> Scene:
    pose = np.clip(rng.standard_normal(6), -2.0, 2.0).tolist()
    draws = rng.random(20).tolist()
    return Scene(
        shift=(0.008 * pose[0], 0.008 * pose[1]),
        scale=1.12 + 0.02 * pose[2],
        roll=0.03 * pose[3],
        yaw=0.45 * pose[4],
        gaze=0.5 * pose[5],
        light_side=2.0 * draws[0] - 1.0,
        brightness=0.92 + 0.14 * draws[1],
        warmth=2.0 * draws[2] - 1.0,
        smile=0.6 + 0.4 * draws[3],
        gap=0.6 + 0.4 * draws[4],
        backdrop=_sample_backdrop(draws[5:9]),
        cloth=_pick(_CLOTHS, draws[9]),
        tie=_pick(_TIES, draws[10]),
        hat=_pick(_CLOTHS, draws[11]),
        lipstick=_pick(_LIPSTICKS, draws[12]),
        eyeshadow=_pick(_EYESHADOWS, draws[13]),
        metal=_pick(METALS, draws[14]),
        hat_style=draws[15],
        glasses_style=draws[16],
        jewel_style=draws[17],
    )


def _sample_backdrop(draws: list[float]) -> tuple[RGB, RGB, RGB, RGB]:
    first, second, third, fourth = (_pick(_BACKDROPS, draw) for draw in draws)
    return first, second, third, fourth
