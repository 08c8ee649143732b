# SPDX-License-Identifier: Apache-2.0
"""Train, validation, test and auxiliary: no identity is in two of them."""

import dataclasses

import numpy as np
from numpy.typing import NDArray

from .errors import some
from .schema import AUXILIARY, SPLITS, TEST, TRAIN, Table

__all__ = ["set_auxiliary_aside", "split_problems"]


def split_problems(table: Table, where: str) -> list[str]:
    """Return what is wrong with a source's own division into train, validation and test.

    Parameters
    ----------
    table : Table
        The source's rows.
    where : str
        What to name in the message: the file or field the division comes from.
    """
    problems = []
    pairs = np.unique(np.stack([table.identity, table.split.astype(np.int64)]), axis=1)
    identities, parts = np.unique(pairs[0], return_counts=True)
    torn = identities[parts > 1]
    if len(torn):
        first = " and ".join(SPLITS[code] for code in pairs[1, pairs[0] == torn[0]])
        problems.append(
            f"{where}: {len(torn)} identities are in more than one split, which would leak people "
            f"between them: {some(torn)} (identity {torn[0]} is in {first})"
        )
    problems += [
        f"{where}: no image is in the {SPLITS[code]} split"
        for code in (TRAIN, TEST)
        if not (table.split == code).any()
    ]
    return problems


def set_auxiliary_aside(table: Table, share: float, seed: int) -> Table:
    """Move a share of the training identities to the attacker's split.

    Parameters
    ----------
    table : Table
        Rows with the source's own splits.
    share : float
        Share of training identities, rounded to whole identities: at least one if above 0, and
        at least one stays in train.
    seed : int
        Draws them. With one seed, a larger share contains the smaller one.
    """
    identities = np.unique(table.identity[table.split == TRAIN])
    chosen = _shuffled(identities, seed)[: _count(share, len(identities))]
    split = table.split.copy()
    split[(split == TRAIN) & np.isin(table.identity, chosen)] = AUXILIARY
    return dataclasses.replace(table, split=split)


def _count(share: float, available: int) -> int:
    if share <= 0:
        return 0
    return min(max(round(share * available), 1), available - 1)


def _shuffled(identities: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    return np.random.default_rng([seed, AUXILIARY]).permutation(identities)
