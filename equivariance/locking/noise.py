# SPDX-License-Identifier: Apache-2.0
"""How much of a key the attack recovers when its reference is only similar, by noise level."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from equivariance.keys import Secret
from equivariance.locking.architectures import Stack
from equivariance.locking.crack import crack, share_recovered
from equivariance.locking.record import column_order

__all__ = ["noisy_copy", "recovery_by_noise"]


def noisy_copy(state: Mapping[str, Tensor], level: float, *, seed: int) -> dict[str, Tensor]:
    """Add Gaussian noise to floating point parameters, in proportion to the spread of each.

    Parameters
    ----------
    state : mapping of str to Tensor
        A state dict, on the CPU.
    level : float
        Standard deviation of the noise over that of the parameter's entries, >= 0; 1 is as much
        noise as weight.
    seed : int
        Determines the noise, together with the position of a parameter in `state`.
    """
    noisy = {}
    for index, (name, tensor) in enumerate(state.items()):
        values = tensor.to(torch.float32)
        generator = np.random.default_rng((seed, index))
        noise = generator.standard_normal(tuple(values.shape), dtype=np.float32)
        noisy[name] = values + level * values.std(correction=0) * torch.from_numpy(noise)
    return noisy


def recovery_by_noise(
    state: Mapping[str, Tensor],
    stack: Stack,
    secret: Secret,
    levels: Sequence[float],
    *,
    seed: int = 0,
) -> Iterator[dict[str, float]]:
    """Lock a model, attack it from noisy copies of itself, and compare with the key.

    Parameters
    ----------
    state : mapping of str to Tensor
        The plain parameters of the blocks.
    stack : Stack
        What they are.
    secret : Secret
        Of the lock.
    levels : sequence of float
        As for `noisy_copy`.
    seed : int
        Of the noise.

    Yields
    ------
    dict of str to float
        For each level: `noise`; `nearest` and `recovered`, the shares of the key's columns that
        nearest-column matching and the whole attack find; `agreement` and `residual` of `Crack`.
    """
    order = column_order(stack, secret)
    locked = stack.conjugate(state, order)
    for level in levels:
        found = crack(locked, noisy_copy(state, level, seed=seed), stack)
        yield {
            "noise": float(level),
            "nearest": share_recovered(found.nearest, order),
            "recovered": share_recovered(found.order, order),
            "agreement": found.agreement,
            "residual": found.residual,
        }
