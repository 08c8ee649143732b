# SPDX-License-Identifier: Apache-2.0
"""Random words and permutations from a secret, the same on every platform.

The source is the key stream of ChaCha20 (RFC 8439) with counter and nonce zero, read as
little-endian words. A secret has one stream: derive one for each use (`Secret.derive`).
"""

import numpy as np
import numpy.typing as npt
import torch
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from torch import Tensor

from equivariance.keys import Secret

__all__ = ["random_permutations", "uniform_words"]

_WORD_BYTES = 8
_COUNTER_AND_NONCE = bytes(16)


def uniform_words(secret: Secret, count: int) -> npt.NDArray[np.uint64]:
    """Return the first `count` words of a secret's stream.

    Parameters
    ----------
    secret : Secret
        Its stream is a function of it alone: asking twice gives the same words.
    count : int
        >= 0, below 2**35 (256 GiB, where ChaCha20's block counter ends).

    Returns
    -------
    ndarray of uint64, [count]
        Uniform on 0 ... 2**64 - 1; read-only.
    """
    cipher = Cipher(ChaCha20(secret.raw, _COUNTER_AND_NONCE), mode=None)
    stream = cipher.encryptor().update(bytes(_WORD_BYTES * count))
    return np.frombuffer(stream, dtype="<u8").astype(np.uint64, copy=False)


def random_permutations(
    secret: Secret, *, count: int, length: int, device: torch.device | str | None = None
) -> Tensor:
    """Return independent, uniformly random permutations.

    Each is the stable argsort of `length` words of the stream: no rejection, no modulo bias. The
    order of distinct words is uniform; two of them are equal with a probability below
    length**2 / 2**65 (1e-15 for 196 tokens), and then stay in their old order.

    Parameters
    ----------
    secret : Secret
        Determines the result. Fewer permutations are the first ones of more.
    count, length : int
        How many, of how many entries; >= 0.
    device : optional
        Where the result is put. It is computed on the CPU.

    Returns
    -------
    Tensor
        [count, length], int64.
    """
    words = uniform_words(secret, count * length).reshape(count, length)
    orders = np.argsort(words, axis=-1, kind="stable").astype(np.int64, copy=False)
    return torch.from_numpy(orders).to(device)
