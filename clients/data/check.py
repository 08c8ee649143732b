# SPDX-License-Identifier: Apache-2.0
"""Everything that can be wrong with the data, found together before anything is trained."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .catalogue import Catalogue, open_catalogue
from .errors import DataError
from .schema import ATTRIBUTES, SPLITS
from .spec import DataSpec, spec_problems

__all__ = ["SourceSummary", "check_source"]


@dataclass(frozen=True, kw_only=True)
class SourceSummary:
    """What a source holds.

    Parameters
    ----------
    data : str
        The source as written in the spec.
    images : Mapping[str, int]
        Number of images in each of the four splits.
    identities : Mapping[str, int]
        Number of identities in each of the four splits.
    attributes : tuple[str, ...]
        Names of the labels.
    majority_floor : Mapping[str, float]
        For each attribute the accuracy, 0.5 to 1, of always answering the test split's more
        frequent value: what a model must beat.
    shards : Mapping[str, tuple[int, ...]]
        Number of images of each client in train, validation and test; empty if no number of
        clients was given.
    """

    data: str
    images: Mapping[str, int]
    identities: Mapping[str, int]
    attributes: tuple[str, ...]
    majority_floor: Mapping[str, float]
    shards: Mapping[str, tuple[int, ...]]


def check_source(
    spec: DataSpec, *, num_partitions: int | None = None, decode: bool = False
) -> SourceSummary:
    """Check the spec, the source's tables and the division among clients.

    Parameters
    ----------
    spec : DataSpec
        What data, and how it is divided.
    num_partitions : int or None
        Number of clients; None checks no division.
    decode : bool
        Also decode every image, which fills the cache with what ``load_shard`` and
        ``load_auxiliary`` return. Otherwise no pixel is read.

    Raises
    ------
    DataError
        With all problems found together.
    """
    problems = spec_problems(spec, num_partitions)
    # A source is checked even where the division asked for makes no sense.
    sound = dataclasses.replace(spec, auxiliary=0.0, seed=0) if problems else spec
    try:
        catalogue = open_catalogue(sound)
    except DataError as error:
        problems += error.problems
    if problems:
        raise DataError(*problems)
    clients = range(num_partitions or 0)
    shards = {
        split: [catalogue.rows(split, client, len(clients)) for client in clients]
        for split in SPLITS[:3]
    }
    if decode:
        _decode(catalogue, shards)
    return _summary(catalogue, shards)


def _decode(catalogue: Catalogue, shards: Mapping[str, list[NDArray[np.int64]]]) -> None:
    problems: list[str] = []
    whole = {split: [catalogue.table.rows(split)] for split in SPLITS}
    for split, parts in (whole | {name: rows for name, rows in shards.items() if rows}).items():
        for number, rows in enumerate(parts):
            try:
                catalogue.pixels(rows)
            except DataError as error:
                where = f"{split}, client {number}" if len(parts) > 1 else split
                problems += [f"{where}: {problem}" for problem in error.problems]
    if problems:
        raise DataError(*problems)


def _summary(catalogue: Catalogue, shards: Mapping[str, list[NDArray[np.int64]]]) -> SourceSummary:
    table = catalogue.table
    share = table.attributes[table.rows("test")].mean(axis=0)
    return SourceSummary(
        data=catalogue.spec.data,
        images={split: len(table.rows(split)) for split in SPLITS},
        identities={split: len(np.unique(table.identity[table.rows(split)])) for split in SPLITS},
        attributes=ATTRIBUTES,
        majority_floor=dict(zip(ATTRIBUTES, np.maximum(share, 1 - share).tolist(), strict=True)),
        shards={split: tuple(map(len, parts)) for split, parts in shards.items() if parts},
    )
