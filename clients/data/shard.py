# SPDX-License-Identifier: Apache-2.0
"""The images of one client, or of the attacker, ready for a batch."""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .catalogue import Catalogue, open_catalogue
from .errors import DataError, did_you_mean
from .schema import ATTRIBUTES, SPLITS, to_dataset
from .spec import DataSpec, spec_problems

if TYPE_CHECKING:
    from datasets import Dataset

__all__ = ["Shard", "load_auxiliary", "load_dataset", "load_shard"]


@dataclass(frozen=True, eq=False)
class Shard:
    """N images with their labels, in ascending order of ``indices``; all arrays are read-only.

    Parameters
    ----------
    images : NDArray[np.uint8]
        RGB pixels, 0 to 255, memory-mapped. [N, H, W, 3]
    labels : NDArray[np.uint8]
        0 or 1, in the order of ``attributes``. [N, 40]
    identities : NDArray[np.int64]
        Who is on the image. [N]
    indices : NDArray[np.int64]
        Row number in the source: the stable name of an image. [N]
    attributes : tuple[str, ...]
        Names of the labels' columns.
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.uint8]
    identities: NDArray[np.int64]
    indices: NDArray[np.int64]
    attributes: tuple[str, ...] = ATTRIBUTES

    def __len__(self) -> int:
        return len(self.indices)


def load_shard(spec: DataSpec, *, partition_id: int, num_partitions: int, split: str) -> Shard:
    """Return one client's images of one split.

    The first call decodes them into the cache, later processes map them from there, and a
    repeated call in a process returns the same object.

    Parameters
    ----------
    spec : DataSpec
        What data, and how it is divided.
    partition_id : int
        The client, from 0 to ``num_partitions`` - 1.
    num_partitions : int
        Number of clients.
    split : str
        ``train``, ``validation`` or ``test``. The latter two may come out empty for a client.

    Raises
    ------
    DataError
        With all problems of the spec, the source, the division or the images.
    """
    problems = spec_problems(spec, num_partitions)
    if split not in SPLITS[:3]:
        hint = (
            "the auxiliary split belongs to no client, use load_auxiliary"
            if split == "auxiliary"
            else did_you_mean(split, SPLITS[:3])
        )
        problems.append(f"split = {split!r}: unknown; {hint}")
    if num_partitions >= 1 and not 0 <= partition_id < num_partitions:
        problems.append(
            f"partition id = {partition_id}: must be from 0 to {num_partitions - 1} "
            f"for {num_partitions} clients"
        )
    if problems:
        raise DataError(*problems)
    return _client_shard(open_catalogue(spec), partition_id, num_partitions, split)


def load_auxiliary(spec: DataSpec) -> Shard:
    """Return the attacker's images: training identities that no client has. Empty if share is 0.

    Raises
    ------
    DataError
        With all problems of the spec, the source or the images.
    """
    if problems := spec_problems(spec):
        raise DataError(*problems)
    return _auxiliary_shard(open_catalogue(spec))


def load_dataset(spec: DataSpec) -> "Dataset":
    """Return all rows as a Hugging Face dataset without pixels: see ``schema.to_dataset``.

    Raises
    ------
    DataError
        With all problems of the spec or the source.
    """
    if problems := spec_problems(spec):
        raise DataError(*problems)
    return to_dataset(open_catalogue(spec).table)


# A mapped shard holds a file descriptor, so not all of a large federation are kept.
@lru_cache(maxsize=256)
def _client_shard(
    catalogue: Catalogue, partition_id: int, num_partitions: int, split: str
) -> Shard:
    return _shard(catalogue, catalogue.rows(split, partition_id, num_partitions))


@lru_cache(maxsize=4)
def _auxiliary_shard(catalogue: Catalogue) -> Shard:
    return _shard(catalogue, catalogue.table.rows("auxiliary"))


def _shard(catalogue: Catalogue, rows: NDArray[np.int64]) -> Shard:
    table = catalogue.table
    shard = Shard(catalogue.pixels(rows), table.attributes[rows], table.identity[rows], rows)
    for array in (shard.images, shard.labels, shard.identities, shard.indices):
        array.flags.writeable = False
    return shard
