# SPDX-License-Identifier: Apache-2.0
"""A network of timm where there is no face network."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attacks.errors import AttackError
from attacks.metrics.faces import cut_faces
from split.seeds import seeded

__all__ = ["TimmEmbedder"]

BATCH, SIDE = 32, 112


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
            raise AttackError(f"attack-face = timm:{model}: timm has no such model")
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
        """See :class:`~attacks.metrics.faces.FaceEmbedder`."""
        faces = (cut_faces(images, SIDE) - self._mean) / self._std
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
