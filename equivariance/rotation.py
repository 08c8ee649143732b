# SPDX-License-Identifier: Apache-2.0
"""Rotation of row keys: how long one permutation of tokens stays in use."""

from typing import Literal, get_args

import torch
from torch import Tensor

from equivariance.keys import Secret
from equivariance.stream import random_permutations

__all__ = ["ROTATIONS", "Rotation", "row_orders"]

Rotation = Literal["sample", "batch", "round", "fixed"]
ROTATIONS: tuple[Rotation, ...] = get_args(Rotation)


def row_orders(
    secret: Secret,
    *,
    rotation: Rotation,
    purpose: str,
    round: int,
    step: int,
    batch: int,
    tokens: int,
    device: torch.device | str | None = None,
) -> Tensor:
    """Return the row permutation of each sample in a batch.

    Parameters
    ----------
    secret : Secret
        The client's. The result is a function of the arguments alone, so a client that kept no
        state computes it again.
    rotation : {"sample", "batch", "round", "fixed"}
        `sample`: a new one for every sample of every step. `batch`: for every step, common to its
        samples (the paper). `round`: for every round, common to its purposes and steps.
        `fixed`: one for ever.
    purpose : str
        What the batch is for, e.g. `"train"` or `"evaluate"`.
    round, step : int
        Index of the round, and of the step in it.
    batch, tokens : int
        Samples, and tokens of each that are permuted.
    device : optional
        Where the result is put.

    Returns
    -------
    Tensor
        [batch, tokens], int64. Except for `sample` its rows share memory: do not write to it.

    Raises
    ------
    ValueError
        If the rotation is unknown.
    """
    scopes: dict[str, tuple[int | str, ...]] = {
        "sample": (purpose, round, step),
        "batch": (purpose, round, step),
        "round": (round,),
        "fixed": (),
    }
    if rotation not in scopes:
        raise ValueError(f"rotation {rotation!r} is unknown; allowed are {', '.join(ROTATIONS)}")
    # The number of tokens takes part, or two sizes would read the same words of one stream.
    key = secret.derive("rows", rotation, tokens, *scopes[rotation])
    count = batch if rotation == "sample" else 1
    orders = random_permutations(key, count=count, length=tokens, device=device)
    return orders.expand(batch, tokens)
