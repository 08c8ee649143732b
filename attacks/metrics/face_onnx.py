# SPDX-License-Identifier: Apache-2.0
"""A face network in an ONNX file, and what values it takes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attacks.errors import AttackError
from attacks.metrics.faces import cut_faces

__all__ = ["FaceInput", "OnnxEmbedder"]

BATCH = 32


@dataclass(frozen=True, kw_only=True)
class FaceInput:
    """What values a face network takes; the default is that of SFace.

    Parameters
    ----------
    black, white : float
        What 0 and 1 of an image become, e.g. -1 and 1.
    bgr : bool
        Whether the channels are blue, green, red.
    """

    black: float = 0.0
    white: float = 255.0
    bgr: bool = False

    def of(self, faces: Tensor) -> NDArray[np.float32]:
        """The input for faces ``[M, 3, side, side]`` in [0, 1]."""
        channels = faces.flip(1) if self.bgr else faces
        values = self.black + (self.white - self.black) * channels
        result: NDArray[np.float32] = values.numpy().astype(np.float32)
        return result


class OnnxEmbedder:
    """A face network in an ONNX file, run by onnxruntime on the CPU (extra ``faces``).

    Parameters
    ----------
    path : Path
        A network with one input [1 or any, 3, side, side] of floats, and one output [.., E].
    values : FaceInput
        What it takes for the colours; by default RGB from 0 to 255.

    Raises
    ------
    AttackError
        If onnxruntime is missing, the file is none, or its input is another one.
    """

    def __init__(self, path: Path, values: FaceInput | None = None) -> None:
        self.values = values or FaceInput()
        self.name = path.stem
        if not path.is_file():
            raise AttackError(f"attack-face = {str(path)!r}: no such file")
        try:
            import onnxruntime
        except ImportError as error:
            raise AttackError(
                f"attack-face = {str(path)!r}: needs onnxruntime: pip install 'permsplit[faces]'"
            ) from error
        try:
            quiet = onnxruntime.SessionOptions()
            quiet.log_severity_level = 3  # errors; a file's unused weights are none
            self._session: Any = onnxruntime.InferenceSession(
                str(path), quiet, providers=["CPUExecutionProvider"]
            )
        except Exception as error:
            raise AttackError(f"attack-face = {str(path)!r}: no ONNX network: {error}") from error
        entries = self._session.get_inputs()
        if len(entries) != 1 or not _takes_faces(entries[0]):
            found = ", ".join(f"{e.name!r} is {list(e.shape)} of {e.type}" for e in entries)
            raise AttackError(
                f"attack-face = {str(path)!r}: its input {found}; allowed is "
                "[1 or any, 3, side, side] with a fixed side, of tensor(float), and no other input"
            )
        entry, shape = entries[0], list(entries[0].shape)
        self._input, self._side = entry.name, int(shape[2])
        self._whole_batch = not isinstance(shape[0], int)

    def embed(self, images: Tensor) -> NDArray[np.float64]:
        """See :class:`~attacks.metrics.faces.FaceEmbedder`."""
        size = BATCH if self._whole_batch else 1
        parts = torch.split(cut_faces(images, self._side), size)
        batches = [self.values.of(part) for part in parts]
        found = [self._session.run(None, {self._input: batch})[0] for batch in batches]
        result: NDArray[np.float64] = np.concatenate(found).reshape(len(images), -1).astype(float)
        return result


def _takes_faces(entry: Any) -> bool:
    shape = list(entry.shape)
    if len(shape) != 4 or entry.type != "tensor(float)":
        return False
    any_batch = shape[0] == 1 or not isinstance(shape[0], int)
    return any_batch and shape[1] == 3 and shape[2] == shape[3] and isinstance(shape[2], int)
