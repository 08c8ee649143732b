# SPDX-License-Identifier: Apache-2.0
"""The network of F-SIM by its name in a run's configuration."""

from pathlib import Path

from attacks.metrics.face_onnx import OnnxEmbedder
from attacks.metrics.face_timm import TimmEmbedder
from attacks.metrics.faces import FaceEmbedder

__all__ = ["TIMM", "face_embedder"]

TIMM = "timm:"


def face_embedder(name: str) -> FaceEmbedder:
    """The network of the key ``attack-face``.

    Parameters
    ----------
    name : str
        Path of an ONNX file, or ``timm:NAME``: a network of timm with the hub's weights, or random
        ones where the hub does not answer; the rows of F-SIM name it, and say so.

    Raises
    ------
    AttackError
        If there is no such network.
    """
    if name.startswith(TIMM):
        return TimmEmbedder(name.removeprefix(TIMM))
    return OnnxEmbedder(Path(name))
