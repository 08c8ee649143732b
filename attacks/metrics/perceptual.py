# SPDX-License-Identifier: Apache-2.0
"""LPIPS, by the package ``lpips`` (extra ``lpips``), which fetches AlexNet's weights once."""

from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attacks.errors import AttackError

__all__ = ["LPIPS_SIDE", "lpips_distance", "lpips_network"]

LPIPS_SIDE = 31
"""The smallest side in pixels that AlexNet's layers take."""


@torch.no_grad()
def lpips_distance(originals: Tensor, reconstructions: Tensor) -> NDArray[np.float64]:
    """Perceptual distance of each pair, ``[M]``; 0 is equal. Images are [M, 3, H, W] in [0, 1].

    Raises
    ------
    AttackError
        As :func:`lpips_network`.
    """
    network = lpips_network()
    pairs = zip(torch.split(originals, 32), torch.split(reconstructions, 32), strict=True)
    values = [network(2 * a - 1, 2 * b - 1).flatten() for a, b in pairs]
    result: NDArray[np.float64] = torch.cat(values).double().numpy()
    return result


@lru_cache(maxsize=1)
def lpips_network() -> torch.nn.Module:
    """The network, fetched once a process.

    Raises
    ------
    AttackError
        If the package is missing, or the weights cannot be fetched.
    """
    try:
        import lpips
    except ImportError as error:
        raise AttackError("metric lpips: pip install 'permsplit[lpips]'") from error
    try:
        network: torch.nn.Module = lpips.LPIPS(net="alex", verbose=False).eval()
    except OSError as error:  # urllib's errors are OSErrors
        raise AttackError(f"metric lpips: AlexNet's weights cannot be fetched: {error}") from error
    return network
