# SPDX-License-Identifier: Apache-2.0
"""The wire codec: how a tensor becomes bytes, and back. Only here is a dtype decided."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

WireDtype = Literal["fp32", "fp16"]


@dataclass(frozen=True)
class WireTensor:
    """A tensor as sent.

    Parameters
    ----------
    payload : ndarray
        float32, or float16 of the tensor divided by ``scale``.
    scale : float
        The largest magnitude of the tensor in fp16 (its gradients would underflow else), 1 in fp32.
    """

    payload: NDArray[np.floating]
    scale: float = 1.0

    @property
    def nbytes(self) -> int:
        """Bytes of the payload."""
        return int(self.payload.nbytes)


def encode(tensor: Tensor, dtype: WireDtype) -> WireTensor:
    """Encode a float tensor for the wire. fp32 is exact; fp16 keeps 11 bits of each value."""
    plain = tensor.detach().to("cpu", torch.float32).contiguous()
    if dtype == "fp32":
        return WireTensor(plain.numpy())
    largest = float(plain.abs().max()) if plain.numel() else 1.0
    scale = largest if 0.0 < largest < float("inf") else 1.0
    return WireTensor((plain / scale).to(torch.float16).numpy(), scale)


def decode(wire: WireTensor) -> Tensor:
    """The float32 tensor of ``wire``. May share memory with a read-only payload: do not write."""
    payload = wire.payload
    if payload.dtype == np.float32:
        return torch.from_numpy(payload if payload.flags.writeable else payload.copy())
    return torch.from_numpy(payload.astype(np.float32)).mul_(wire.scale)
