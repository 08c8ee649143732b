# SPDX-License-Identifier: Apache-2.0
"""What an attacker sees: the smashed data, the architecture, and what its threat model grants.

Shapes: M victims, N tokens (prefix tokens included), n patch tokens, D features, A auxiliary
images, K attributes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from attacks.threat import Grant, ThreatModel
from clients.defences import DefencePipeline
from split import Edge

__all__ = ["Auxiliary", "Geometry", "Queries", "View", "Withheld"]


class Withheld(PermissionError):
    """An attacker reached for something that its threat model does not grant."""


@dataclass(frozen=True, kw_only=True)
class Geometry:
    """The architecture: image side and patch side in pixels, patches, tokens, features.

    Parameters
    ----------
    image_size, patch_size : int
        In pixels; images and patches are squares.
    prefix : int
        CLS and register tokens, in front of the patch tokens before any permutation.
    dim : int
        Features of a token.
    cut : int
        Blocks in the edge.
    position : bool
        Whether the edge adds a position embedding.
    outputs : int
        Number of attributes.
    permute : str
        Which permutations the clients apply, as the run announces it.
    permute_prefix : bool
        Whether row permutations move the prefix tokens too.
    """

    image_size: int
    patch_size: int
    prefix: int
    dim: int
    cut: int
    position: bool
    outputs: int
    permute: str
    permute_prefix: bool

    @property
    def side(self) -> int:
        """Patches along a side."""
        return self.image_size // self.patch_size

    @property
    def patches(self) -> int:
        """Patches of an image."""
        return self.side**2

    @property
    def tokens(self) -> int:
        """Tokens of an image, prefix included."""
        return self.prefix + self.patches


@dataclass(frozen=True)
class Auxiliary:
    """Images of people who are no victims.

    Parameters
    ----------
    images : NDArray[np.uint8]
        [A, H, W, 3].
    labels : NDArray[np.uint8]
        [A, K], 0 or 1.
    identities : NDArray[np.int64]
        [A].
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.uint8]
    identities: NDArray[np.int64]


Queries = Callable[[NDArray[np.uint8], int], Tensor]
"""``queries(images [B, H, W, 3], index)``: smashed data ``[B, N, D]`` as a victim's client would
send them; another ``index`` is another batch, with other noise and (as the rotation says) keys."""


class View:
    """What one attacker sees. What is not granted is not in here at all.

    Parameters
    ----------
    threat : ThreatModel
    geometry : Geometry
    smashed : Tensor
        The victims' smashed data as sent, [M, N, D].
    granted : mapping of Grant to object
        Values of fields; those that ``threat`` does not grant are left out.
    """

    def __init__(
        self,
        threat: ThreatModel,
        geometry: Geometry,
        smashed: Tensor,
        granted: Mapping[Grant, object],
    ) -> None:
        self.threat, self.geometry, self.smashed = threat, geometry, smashed
        self._granted = {grant: granted[grant] for grant in threat.grants}

    def grants(self, grant: Grant) -> bool:
        """Whether the threat model grants a field."""
        return grant in self._granted

    @property
    def auxiliary(self) -> Auxiliary:
        """Images of other people."""
        value: Auxiliary = self._get(Grant.AUXILIARY)
        return value

    @property
    def queries(self) -> Queries:
        """The oracle: smashed data of given images."""
        value: Queries = self._get(Grant.QUERIES)
        return value

    @property
    def edge(self) -> Edge:
        """The edge with its weights, for inference. Not to be changed."""
        value: Edge = self._get(Grant.EDGE)
        return value

    @property
    def defence(self) -> DefencePipeline:
        """The defence pipeline of the run."""
        value: DefencePipeline = self._get(Grant.DEFENCE)
        return value

    @property
    def orders(self) -> Tensor:
        """Row permutations [M, N]: received token i is token ``orders[:, i]`` of the edge."""
        value: Tensor = self._get(Grant.ORDERS)
        return value

    def _get(self, grant: Grant) -> Any:
        if grant not in self._granted:
            raise Withheld(f"the threat model {self.threat.name!r} does not grant {grant.value!r}")
        return self._granted[grant]
