# SPDX-License-Identifier: Apache-2.0
"""F-SIM: is it the same face? The cosine of embeddings by a pluggable face network."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from attacks.errors import AttackError
from split.seeds import seeded

__all__ = ["FaceEmbedder", "FaceInput", "OnnxEmbedder", "TimmEmbedder", "f_sim"]

BATCH, TIMM_SIDE = 32, 112

FACE_BOX = (33 / 178, 41 / 178, 145 / 178, 153 / 178)
"""Left, top, right, bottom of the face, as shares of the image's side.

In an aligned CelebA image of 178 x 218 pixels the face is in the box (33, 61, 145, 173), and a
run's square images are its central square, rows 20 to 198. At 64 pixels that is 40 x 40 of them,
enlarged to what the network takes: F-SIM of small images compares blurred faces.
"""


class FaceEmbedder(Protocol):
    """A face network. ``name`` is written beside every value."""

    name: str

    def embed(self, images: Tensor) -> NDArray[np.float64]:
        """Embeddings ``[M, E]`` of images ``[M, 3, H, W]`` in [0, 1]."""
        ...


def f_sim(
    originals: Tensor, reconstructions: Tensor, embedder: FaceEmbedder
) -> NDArray[np.float64]:
    """Cosine of the embeddings of each pair, ``[M]``; what strangers have is not 0, see floors.

    The paper's code takes the absolute value of the cosine, by facenet's InceptionResnetV1 (VGGFace2)
    on the whole image: its F-SIM is another scale than that of any network here.
    """
    a, b = embedder.embed(originals), embedder.embed(reconstructions)
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    cosine: NDArray[np.float64] = (a * b).sum(axis=1) / np.maximum(norms, 1e-12)
    return cosine


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
                "attack-face: an ONNX file needs onnxruntime: pip install 'permsplit[faces]'"
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
        """See :class:`FaceEmbedder`."""
        size = BATCH if self._whole_batch else 1
        parts = torch.split(_faces(images, self._side), size)
        batches = [self.values.of(part) for part in parts]
        found = [self._session.run(None, {self._input: batch})[0] for batch in batches]
        result: NDArray[np.float64] = np.concatenate(found).reshape(len(images), -1).astype(float)
        return result


class TimmEmbedder:
    """A network of timm instead of a face network; its name says so, and whether it is trained.

    Parameters
    ----------
    model : str
        A name of timm's.
    pretrained : bool, optional
        True takes weights from the hub, False random ones from ``seed``; None tries the hub and
        falls back to random ones.
    seed : int
        Of random weights.

    Raises
    ------
    AttackError
        If timm has no such model, or ``pretrained`` is True and the hub does not give weights.
    """

    def __init__(
        self, model: str = "resnet18", *, pretrained: bool | None = None, seed: int = 0
    ) -> None:
        import timm

        if not timm.is_model(model):
            raise AttackError(f"face network {model!r}: allowed are models of timm")
        network = None
        if pretrained is not False:
            network = _pretrained(model, needed=pretrained is True)
        self.name = f"timm:{model}" + ("" if network else " (random weights)")
        if network is None:
            with seeded(seed):
                network = timm.create_model(model, pretrained=False, num_classes=0)
        self._network: torch.nn.Module = network.eval()
        config: dict[str, Any] = network.pretrained_cfg
        self._mean, self._std = (
            torch.tensor(config[key], dtype=torch.float32).view(1, 3, 1, 1)
            for key in ("mean", "std")
        )

    @torch.no_grad()
    def embed(self, images: Tensor) -> NDArray[np.float64]:
        """See :class:`FaceEmbedder`."""
        faces = (_faces(images, TIMM_SIDE) - self._mean) / self._std
        parts = [self._network(part) for part in torch.split(faces, BATCH)]
        result: NDArray[np.float64] = torch.cat(parts).double().numpy()
        return result


def _pretrained(model: str, *, needed: bool) -> Any:
    """The network with the hub's weights; None if there are none to be had and none are needed."""
    import timm

    try:
        return timm.create_model(model, pretrained=True, num_classes=0)
    except Exception as error:  # the hub's, the network's and timm's errors share no class
        if needed:
            raise AttackError(
                f"face network {model!r}: no weights from the hub: {error}"
            ) from error
        return None


def _takes_faces(entry: Any) -> bool:
    shape = list(entry.shape)
    if len(shape) != 4 or entry.type != "tensor(float)":
        return False
    any_batch = shape[0] == 1 or not isinstance(shape[0], int)
    return any_batch and shape[1] == 3 and shape[2] == shape[3] and isinstance(shape[2], int)


def _faces(images: Tensor, side: int) -> Tensor:
    """The face of each image, ``[M, 3, side, side]`` in [0, 1]."""
    images = images.detach().float().cpu()
    height, width = images.shape[-2:]
    left, top, right, bottom = FACE_BOX
    box = images[
        :,
        :,
        round(top * height) : round(bottom * height),
        round(left * width) : round(right * width),
    ]
    return functional.interpolate(
        box, size=(side, side), mode="bilinear", align_corners=False, antialias=True
    ).clamp(0, 1)
