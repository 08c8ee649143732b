# SPDX-License-Identifier: Apache-2.0
"""Measures of one face that several drawers share, in face units (see `clients.faces.canvas`)."""

from dataclasses import dataclass

import numpy as np

from clients.faces.canvas import curve, mirror
from clients.faces.colours import RGB, hair_colour, mix, shade, skin_colour
from clients.faces.description import FaceDescription, Scene, Traits

__all__ = ["Anatomy", "measure"]

_YAW_FEATURES = 0.018  # how far a full turn moves eyes and mouth against the head
_YAW_NOSE = 0.032
_YAW_CHIN = 0.010
_AGED_SKIN: RGB = (196, 160, 140)


@dataclass(frozen=True, kw_only=True, slots=True)
class Anatomy:
    """Positions, half-widths and colours of a face; all lengths in face units, y downwards."""

    present: frozenset[str]
    traits: Traits
    scene: Scene
    skin: RGB
    hair: RGB
    half_width: float
    top_y: float
    chin_y: float
    jaw_x: float
    turn: float
    nose_turn: float
    eye_x: float
    brow_y: float
    nose_y: float
    mouth_y: float
    outline: np.ndarray

    def has(self, name: str) -> bool:
        """Whether the face has the attribute of this name."""
        return name in self.present

    @property
    def shadow(self) -> RGB:
        """Skin in shade, a little redder than the skin."""
        return mix(shade(self.skin, 0.72), (120, 50, 40), 0.12)

    @property
    def crooked(self) -> float:
        """Signed asymmetry of the features, 0 for an attractive face."""
        return 0.0 if self.has("Attractive") else self.traits.asymmetry


def measure(face: FaceDescription) -> Anatomy:
    """Derive the shared measures of a face from its description."""
    present, traits, scene = face.attributes, face.traits, face.scene
    male = "Male" in present
    oval, chubby = "Oval_Face" in present, "Chubby" in present
    half_width = 0.200 + 0.006 * traits.face_width - 0.012 * oval + 0.020 * chubby
    chin_y = 0.318 + 0.008 * traits.face_length + 0.022 * oval + 0.010 * male
    jaw_share = 0.74 + 0.03 * traits.jaw_width + 0.10 * male - 0.07 * oval + 0.14 * chubby
    skin = skin_colour(traits.skin_tone, pale="Pale_Skin" in present)
    if "Young" not in present:
        skin = mix(skin, shade(_AGED_SKIN, 1.0 - 0.5 * traits.skin_tone), 0.2)
    return Anatomy(
        present=present,
        traits=traits,
        scene=scene,
        skin=skin,
        hair=hair_colour(present, traits.hair_tint),
        half_width=half_width,
        top_y=-0.292,
        chin_y=chin_y,
        jaw_x=half_width * jaw_share,
        turn=_YAW_FEATURES * scene.yaw,
        nose_turn=_YAW_NOSE * scene.yaw,
        eye_x=0.100 + 0.004 * traits.eye_spacing,
        brow_y=-0.070 - 0.006 * traits.brow_height + 0.008 * male,
        nose_y=0.118 + 0.008 * traits.nose_length + 0.014 * ("Big_Nose" in present),
        mouth_y=0.205 + 0.006 * traits.face_length + 0.008 * oval,
        outline=_outline(present, half_width, half_width * jaw_share, chin_y, scene.yaw),
    )


def _outline(
    present: frozenset[str], half_width: float, jaw_x: float, chin_y: float, yaw: float
) -> np.ndarray:
    """Closed outline of the face from the crown to the chin."""
    male, cheekbones = "Male" in present, "High_Cheekbones" in present
    oval, chubby = "Oval_Face" in present, "Chubby" in present
    chin_x = 0.070 + 0.030 * male - 0.018 * oval + 0.030 * chubby
    half = [
        (0.0, -0.292),
        (half_width * 0.62, -0.262),
        (half_width * 0.93, -0.150),
        (half_width, 0.000),
        (half_width * (1.02 if cheekbones else 0.99), 0.075),
        (jaw_x * 1.04, 0.195 + 0.02 * chubby),
        (chin_x, chin_y - 0.020),
        (0.0, chin_y),
    ]
    points = np.array(mirror(half))
    points[:, 0] += _YAW_CHIN * yaw * np.clip(points[:, 1] / chin_y, -1.0, 1.0)
    return curve(points, closed=True)
