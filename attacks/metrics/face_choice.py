# SPDX-License-Identifier: Apache-2.0
"""The network of F-SIM by its name in a run's configuration."""

from functools import lru_cache
from pathlib import Path

import timm

from attacks.errors import AttackError
from attacks.metrics.face_onnx import OnnxEmbedder
from attacks.metrics.face_timm import TimmEmbedder
from attacks.metrics.faces import FaceEmbedder

__all__ = ["TIMM", "check_face", "face_embedder"]

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


def check_face(name: str, *, opened: bool) -> None:
    """Find out whether there is such a network, without fetching one.

    Parameters
    ----------
    name : str
        As in :func:`face_embedder`.
    opened : bool
        Whether an ONNX file is opened; otherwise it must only be there.

    Raises
    ------
    AttackError
        If there is none.
    """
    model, file = name.removeprefix(TIMM), Path(name)
    if model != name:
        if not timm.is_model(model):
            raise AttackError("timm has no such model; timm.list_models() names them")
    elif not file.is_file():
        raise AttackError("no such file; allowed is an ONNX file, or timm:NAME")
    elif opened:
        _open_once(file, file.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _open_once(file: Path, changed: int) -> None:
    """A sweep asks for the same file once a trial."""
    OnnxEmbedder(file)
