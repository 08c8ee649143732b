# SPDX-License-Identifier: Apache-2.0
"""One schema for every source: which rows there are, without their pixels."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clients.faces import ATTRIBUTES

if TYPE_CHECKING:
    from datasets import Dataset

__all__ = ["ATTRIBUTES", "SPLITS", "TRAIN", "Table", "to_dataset"]

SPLITS = ("train", "validation", "test", "auxiliary")
TRAIN, VALIDATION, TEST, AUXILIARY = range(4)


@dataclass(frozen=True, eq=False)
class Table:
    """The rows of a source as columns of N entries; a row's position is its ``index``.

    Parameters
    ----------
    identity : NDArray[np.int64]
        Who is on the image. [N]
    split : NDArray[np.uint8]
        Position in ``SPLITS``. [N]
    attributes : NDArray[np.uint8]
        0 or 1, in the order of ``ATTRIBUTES``. [N, 40]
    image : NDArray[np.str_]
        The source's own reference to the image, such as a file name. [N]
    """

    identity: NDArray[np.int64]
    split: NDArray[np.uint8]
    attributes: NDArray[np.uint8]
    image: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.identity)

    def rows(self, split: str) -> NDArray[np.int64]:
        """Return the ascending row numbers of a split."""
        return np.flatnonzero(self.split == SPLITS.index(split)).astype(np.int64)


def to_dataset(table: Table) -> "Dataset":
    """Return the table as a Hugging Face dataset.

    Columns: ``index`` (int64), ``identity`` (int64), ``split`` (string), ``attributes`` (40 uint8
    in the order of ``ATTRIBUTES``), ``image`` (string: the reference, never the pixels).
    """
    from datasets import Dataset, Features, List, Value

    features = Features(
        {
            "index": Value("int64"),
            "identity": Value("int64"),
            "split": Value("string"),
            "attributes": List(Value("uint8"), length=len(ATTRIBUTES)),
            "image": Value("string"),
        }
    )
    columns = {
        "index": np.arange(len(table)),
        "identity": table.identity,
        "split": np.array(SPLITS)[table.split],
        "attributes": table.attributes,
        "image": table.image,
    }
    return Dataset.from_dict(columns, features=features)
