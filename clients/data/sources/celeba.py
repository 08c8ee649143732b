# SPDX-License-Identifier: Apache-2.0
"""``celeba:/path``: CelebA as its authors publish it, aligned and cropped.

Z. Liu, P. Luo, X. Wang, X. Tang, "Deep Learning Face Attributes in the Wild", ICCV 2015. The folder
holds ``img_align_celeba/`` (JPEG, 178 x 218 pixels) and three text tables; the attributes' table
fixes the order of the rows.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, some
from ..pixels import decode_square
from ..schema import ATTRIBUTES, Table
from .base import Source

__all__ = ["CelebaFolder"]

IMAGES = "img_align_celeba"
LABELS = "list_attr_celeba.txt"
PARTS = "list_eval_partition.txt"
PEOPLE = "identity_CelebA.txt"


class CelebaFolder(Source):
    """The official folder; a relative path is taken from the working directory."""

    usage = f"celeba:/path to the folder of {IMAGES}/, {LABELS}, {PARTS} and {PEOPLE}"
    division = PARTS

    def __init__(self, argument: str) -> None:
        self.folder = Path(argument).expanduser().resolve()

    def fingerprint(self) -> str:
        """Return the folder's path, and the size and time of its tables and of the image folder.

        An image added, removed or replaced by renaming changes the image folder's time; one
        overwritten in place does not.
        """
        names = (IMAGES, LABELS, PARTS, PEOPLE)
        missing = [name for name in names[1:] if not (self.folder / name).is_file()]
        if not (self.folder / IMAGES).is_dir():
            missing.insert(0, f"{IMAGES}/")
        if not self.folder.is_dir():
            raise DataError(f"data = 'celeba:{self.folder}': no such folder; expected {self.usage}")
        if missing:
            raise DataError(
                f"data = 'celeba:{self.folder}': missing {', '.join(missing)}; "
                f"expected {self.usage}"
            )
        stats = [(self.folder / name).stat() for name in names]
        marks = [f"{stat.st_size}:{stat.st_mtime_ns}" for stat in stats]
        return "\n".join([f"celeba:{self.folder}", *marks])

    def read_table(self) -> Table:
        self.fingerprint()
        problems: list[str] = []
        labels = _read(self.folder / LABELS, ATTRIBUTES, (-1, 1), problems, header=True)
        parts = _read(self.folder / PARTS, ("part",), (0, 1, 2), problems)
        people = _read(self.folder / PEOPLE, ("identity",), None, problems)
        for other in (parts, people):
            problems += _name_problems(labels, other)
        problems += self._absent_images(labels.names)
        if problems:
            raise DataError(*problems)
        return Table(
            identity=people.in_order_of(labels)[:, 0].astype(np.int64),
            split=parts.in_order_of(labels)[:, 0].astype(np.uint8),
            attributes=(labels.values > 0).astype(np.uint8),
            image=labels.names,
        )

    def _absent_images(self, names: NDArray[np.str_]) -> list[str]:
        with os.scandir(self.folder / IMAGES) as entries:
            present = {entry.name for entry in entries}
        absent = [name for name in names.tolist() if name not in present]
        if not absent:
            return []
        return [f"{IMAGES}/: {len(absent)} of {len(names)} listed images missing: {some(absent)}"]

    def read_pixels(self, image: str, size: int) -> NDArray[np.uint8]:
        return decode_square(self.folder / IMAGES / image, size)


@dataclass(frozen=True)
class _TextTable:
    """A text table: one row for each image, whole numbers by column. [N] and [N, columns]."""

    file: str
    names: NDArray[np.str_]
    values: NDArray[np.int64]

    def in_order_of(self, other: "_TextTable") -> NDArray[np.int64]:
        order = np.argsort(self.names)
        return self.values[order[np.searchsorted(self.names, other.names, sorter=order)]]


def _read(
    path: Path,
    columns: tuple[str, ...],
    allowed: tuple[int, ...] | None,
    problems: list[str],
    *,
    header: bool = False,
) -> _TextTable:
    """Read a table; what is wrong is added to ``problems``, and its rows are then left out.

    Parameters
    ----------
    path : Path
        Lines of an image's name and one whole number for each column, separated by blanks.
    columns : tuple[str, ...]
        The columns to return, in this order. Their order in the file is the header's.
    allowed : tuple[int, ...] or None
        The numbers allowed; None is any from 0.
    problems : list[str]
        Grows by what is found.
    header : bool
        Whether the file begins with the number of rows and the names of the columns.
    """
    import pandas as pd

    empty = _TextTable(path.name, np.array([], np.str_), np.zeros((0, len(columns)), np.int64))
    found: list[str] = list(columns)
    count = None
    if header:
        count, found = _read_header(path)
        problems += _column_problems(path.name, columns, found)
        if set(columns) - set(found) or len(set(found)) < len(found):
            return empty
    try:
        frame = pd.read_csv(
            path,
            sep=r"\s+",
            header=None,
            skiprows=2 if header else 0,
            dtype={0: "str"} | dict.fromkeys(range(1, len(found) + 1), "int64"),
            keep_default_na=False,
        )
        values = frame.iloc[:, 1:].to_numpy(np.int64)
        sound = values.shape[1] == len(found) and _allowed(values, allowed)
    except ValueError:  # pandas' ParserError and EmptyDataError are ValueErrors
        sound = False
    if not sound:
        problems.append(_first_bad_lines(path, found, allowed, 2 if header else 0))
        return empty
    names = frame[0].to_numpy(np.str_)
    if count is not None and count != str(len(names)):
        problems.append(f"{path.name} line 1: says {count!r} images, but {len(names)} rows follow")
    unique, counts = np.unique(names, return_counts=True)
    if len(unique) < len(names):
        problems.append(f"{path.name}: images listed more than once: {some(unique[counts > 1])}")
    return _TextTable(path.name, names, values[:, [found.index(name) for name in columns]])


def _read_header(path: Path) -> tuple[str, list[str]]:
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.readline().strip(), file.readline().split()


def _column_problems(file: str, columns: tuple[str, ...], found: list[str]) -> list[str]:
    missing = [name for name in columns if name not in found]
    unknown = [name for name in found if name not in columns]
    twice = sorted({name for name in found if found.count(name) > 1})
    worded = {"missing": missing, "unknown": unknown, "repeated": twice}
    return [
        f"{file} line 2: {word} attribute columns: {some(names)} (expected CelebA's {len(columns)})"
        for word, names in worded.items()
        if names
    ]


def _allowed(values: NDArray[np.int64], allowed: tuple[int, ...] | None) -> bool:
    return bool((values >= 0).all() if allowed is None else np.isin(values, allowed).all())


def _first_bad_lines(
    path: Path, columns: list[str], allowed: tuple[int, ...] | None, skip: int
) -> str:
    """Read slowly what could not be read quickly, to say where and why."""
    expected = "a whole number from 0" if allowed is None else " or ".join(map(str, allowed))
    bad = []
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            if number <= skip or not line.strip():
                continue
            name, *texts = line.split()
            if len(texts) != len(columns):
                bad.append(f"line {number} ({name}) has {len(texts)} values, not {len(columns)}")
                continue
            bad += [
                f"line {number} ({name}) {column} = {text!r}, expected {expected}"
                for column, text in zip(columns, texts, strict=True)
                if not _whole(text) or not _allowed(np.array([int(text)]), allowed)
            ]
    return f"{path.name}: {some(bad) if bad else 'no rows'}"


def _whole(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdigit() and len(text) < 19


def _name_problems(labels: _TextTable, other: _TextTable) -> list[str]:
    """Compare the images two tables list; a table that could not be read is not compared."""
    same = np.array_equal(labels.names, other.names)
    if same or not len(labels.names) or not len(other.names):
        return []
    problems = []
    if len(labels.names) != len(other.names):
        problems.append(
            f"{other.file}: {len(other.names)} rows, but {labels.file} has {len(labels.names)}"
        )
    lacking = np.setdiff1d(labels.names, other.names)
    surplus = np.setdiff1d(other.names, labels.names)
    if len(lacking):
        problems.append(f"{other.file}: {len(lacking)} images not listed: {some(lacking)}")
    if len(surplus):
        problems.append(
            f"{other.file}: {len(surplus)} images not in {labels.file}: {some(surplus)}"
        )
    return problems
