# SPDX-License-Identifier: Apache-2.0
"""Which rows there are and whose they are: read, checked and divided once, then kept on disk."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .cache import cached_arrays, cached_pixels, short_digest, source_folder
from .errors import DataError
from .partition import assign_clients
from .schema import Table
from .sources import Source, open_source
from .spec import DataSpec
from .splits import set_auxiliary_aside, split_problems

__all__ = ["Catalogue", "open_catalogue"]


@dataclass(frozen=True, eq=False)
class Catalogue:
    """The rows of a spec's source, in their four splits, and where their pixels are kept."""

    spec: DataSpec
    source: Source
    folder: Path
    table: Table

    def rows(self, split: str, partition_id: int, num_partitions: int) -> NDArray[np.int64]:
        """Return the ascending rows of a client in train, validation or test."""
        rows = self.table.rows(split)
        owned: NDArray[np.int64] = rows[
            _owners(self.spec, self.folder, num_partitions)[rows] == partition_id
        ]
        return owned

    def pixels(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return the pixels of ascending rows, decoding those that were never decoded."""
        images = self.table.image[rows]
        read = self.source.read_pixels
        return cached_pixels(self.folder, rows, images, self.spec.image_size, read)


def open_catalogue(spec: DataSpec) -> Catalogue:
    """Return the catalogue of a spec whose own values are sound.

    Asked again, it costs no more than the source's fingerprint.

    Raises
    ------
    DataError
        With all problems of the source.
    """
    source = open_source(spec.data)
    scheme = spec.data.partition(":")[0]
    return _catalogue(spec, source_folder(spec.cache_path, scheme, source.fingerprint()))


@lru_cache(maxsize=8)
def _catalogue(spec: DataSpec, folder: Path) -> Catalogue:
    table = set_auxiliary_aside(_table(spec.data, folder), spec.auxiliary, spec.seed)
    return Catalogue(spec, open_source(spec.data), folder, table)


@lru_cache(maxsize=4)
def _table(data: str, folder: Path) -> Table:
    def read() -> dict[str, NDArray[np.generic]]:
        table = open_source(data).read_table()
        problems = split_problems(table, open_source(data).division)
        if problems:
            raise DataError(*problems)
        return vars(table)

    return Table(**cached_arrays(folder / "table.npz", read))


@lru_cache(maxsize=16)
def _owners(spec: DataSpec, folder: Path, num_partitions: int) -> NDArray[np.int32]:
    asked = (
        spec.partition,
        spec.dirichlet_alpha,
        spec.dirichlet_attribute,
        spec.auxiliary,
        spec.seed,
        num_partitions,
    )
    path = folder / f"owners-{short_digest(repr(asked).encode())}.npz"
    table = _catalogue(spec, folder).table
    kept = cached_arrays(path, lambda: {"owners": assign_clients(table, spec, num_partitions)})
    owners: NDArray[np.int32] = kept["owners"]
    return owners
