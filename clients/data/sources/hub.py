# SPDX-License-Identifier: Apache-2.0
"""``hf:NAME``: CelebA as a Hugging Face data set, on the hub or in a local folder.

Columns: ``image``, ``celeb_id`` and either one yes/no column for each of the 40 attributes, as in
``flwrlabs/celeba``, or ``attributes`` with the 40 values in the official order. Splits: ``train``,
``valid`` (or ``validation``) and ``test``.
"""

import io
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, some
from ..pixels import decode_square
from ..schema import ATTRIBUTES, Table
from .base import Source

__all__ = ["HubDataset"]

PARTS = {"train": 0, "valid": 1, "validation": 1, "test": 2}


class HubDataset(Source):
    """What ``datasets.load_dataset(NAME)`` returns; ``datasets`` keeps the download."""

    usage = (
        "hf:NAME with NAME on the Hugging Face hub or a local folder, such as hf:flwrlabs/celeba"
    )
    division = "splits of the data set"

    def __init__(self, argument: str) -> None:
        self.name = argument

    @cached_property
    def _parts(self) -> dict[str, Any]:
        """The splits in the order train, validation, test, their images left encoded."""
        from datasets import Image, load_dataset

        try:
            loaded = load_dataset(self.name)
        except Exception as error:  # the hub, the disk and every file format fail in their own way
            first: BaseException = error
            while first.__cause__ is not None:
                first = first.__cause__
            reason = f"{type(first).__name__}: {first}"
            raise DataError(f"data = 'hf:{self.name}': cannot be loaded: {reason}") from error
        names = sorted((name for name in loaded if name in PARTS), key=PARTS.__getitem__)
        lacking = {"train", "test"} - set(names)
        if lacking:
            raise DataError(
                f"data = 'hf:{self.name}': missing splits {some(sorted(lacking))}; "
                f"has {some(loaded)}, expected train, valid and test"
            )
        parts = {name: loaded[name] for name in names}
        problems = [line for name in names for line in self._column_problems(name, parts[name])]
        if problems:
            raise DataError(*problems)
        return {
            name: part.cast_column("image", Image(decode=False)) for name, part in parts.items()
        }

    def _column_problems(self, name: str, part: Any) -> list[str]:
        where = f"data = 'hf:{self.name}', split {name}"
        columns = part.column_names
        missing = [column for column in ("image", "celeb_id") if column not in columns]
        if "attributes" not in columns:
            missing += [attribute for attribute in ATTRIBUTES if attribute not in columns]
        if not missing:
            return []
        return [
            f"{where}: missing columns {some(missing)}; expected image, celeb_id and either "
            f"attributes or CelebA's {len(ATTRIBUTES)} attribute columns"
        ]

    def fingerprint(self) -> str:
        """Return the files in which ``datasets`` keeps this version; read once in a process."""
        files = [entry["filename"] for part in self._parts.values() for entry in part.cache_files]
        sizes = [f"{name}:{len(part)}" for name, part in self._parts.items()]
        return "\n".join([f"hf:{self.name}", *sizes, *files])

    def read_table(self) -> Table:
        problems: list[str] = []
        identity, attributes, split, image = [], [], [], []
        for name, part in self._parts.items():
            where = f"data = 'hf:{self.name}', split {name}"
            identity.append(_identities(part, where, problems))
            attributes.append(_attributes(part, where, problems))
            split.append(np.full(len(part), PARTS[name], np.uint8))
            image.append(np.char.add(f"{name}/", np.arange(len(part)).astype(np.str_)))
        if problems:
            raise DataError(*problems)
        return Table(
            identity=np.concatenate(identity),
            split=np.concatenate(split),
            attributes=np.concatenate(attributes),
            image=np.concatenate(image),
        )

    def read_pixels(self, image: str, size: int) -> NDArray[np.uint8]:
        name, _, row = image.partition("/")
        encoded = self._parts[name].select_columns("image")[int(row)]["image"]
        if encoded["bytes"] is None:
            raise OSError(f"no image data ({encoded['path']})")
        return decode_square(io.BytesIO(encoded["bytes"]), size)


def _identities(part: Any, where: str, problems: list[str]) -> NDArray[np.int64]:
    try:
        return np.array([int(value) for value in _column(part, "celeb_id")], np.int64)
    except (TypeError, ValueError, OverflowError) as error:
        problems.append(f"{where}: column celeb_id must hold whole numbers ({error})")
        return np.zeros(len(part), np.int64)


def _attributes(part: Any, where: str, problems: list[str]) -> NDArray[np.uint8]:
    """Return 0 and 1 from yes/no, 0/1 or -1/1. [N, 40]."""
    shape = (len(part), len(ATTRIBUTES))
    try:
        if "attributes" in part.column_names:
            values = np.array(_column(part, "attributes"), np.float64).reshape(shape)
        else:
            columns = [np.array(_column(part, name), np.float64) for name in ATTRIBUTES]
            values = np.stack(columns, axis=1)
    except (TypeError, ValueError) as error:
        problems.append(
            f"{where}: attributes must be {len(ATTRIBUTES)} yes/no values for each image ({error})"
        )
        return np.zeros(shape, np.uint8)
    bad = np.argwhere(~np.isin(values, (-1, 0, 1)))
    if len(bad):
        first = [f"row {row} {ATTRIBUTES[column]} = {values[row, column]}" for row, column in bad]
        problems.append(f"{where}: attributes must be yes/no, 0/1 or -1/1: {some(first)}")
    return (values > 0).astype(np.uint8)


def _column(part: Any, name: str) -> list[Any]:
    values: list[Any] = part.with_format("arrow")[name].to_pylist()
    return values
