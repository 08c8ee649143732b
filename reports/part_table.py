# SPDX-License-Identifier: Apache-2.0
"""An append-only table: a folder of Parquet parts, each written whole or not at all."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from reports.errors import RunFolderError
from reports.schemas import Rows, to_arrow

PART = re.compile(r"part-(\d{6,})\.parquet")


class PartTable:
    """A table in a folder; ``pandas.read_parquet(folder)`` reads it too.

    Parameters
    ----------
    folder : Path
        Made by the first append if it does not exist.
    columns : Mapping[str, pyarrow.DataType]
        Names and types, one of the schemas in :mod:`reports.schemas`.
    """

    def __init__(self, folder: Path, columns: Mapping[str, Any]) -> None:
        self.folder = folder
        self.columns = columns

    def append(self, rows: Rows, **fixed: object) -> None:
        """Write ``rows`` as one more part; no rows write nothing.

        Raises
        ------
        RunFolderError
            If a row does not fit the columns; nothing is written then.
        """
        table = to_arrow(rows, self.columns, **fixed)
        if table.num_rows == 0:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        draft, part = self._claim()
        try:
            pq.write_table(table, draft)
            os.replace(draft, part)  # noqa: PTH105 - named so that the atomic step is plain to see
        except BaseException:
            draft.unlink(missing_ok=True)
            raise

    def read(self) -> pd.DataFrame:
        """All rows in the order of their writing; without any, an empty frame with the columns.

        Raises
        ------
        RunFolderError
            If a part is not a readable Parquet file, or lacks a column, or has one of another
            type; names the part.
        """
        tables = [_read(part, self.columns) for part in self.parts()]
        whole = pa.concat_tables(tables) if tables else to_arrow([], self.columns)
        frame: pd.DataFrame = whole.to_pandas()
        return frame

    def parts(self) -> list[Path]:
        """The finished parts, oldest first; drafts of killed writers are not among them."""
        if not self.folder.is_dir():
            return []
        named = [path for path in self.folder.iterdir() if PART.fullmatch(path.name)]
        return sorted(named, key=_number)

    def truncate_after(self, last_round: int) -> None:
        """Drop the parts that hold only rounds later than ``last_round``, newest first."""
        for part in reversed(self.parts()):
            rounds = _read(part, {"round": self.columns["round"]})["round"].to_pylist()
            if min(rounds) > last_round:
                part.unlink()

    def _claim(self) -> tuple[Path, Path]:
        """A draft and the name it will take, both ours alone, whoever else appends."""
        parts = self.parts()
        number = _number(parts[-1]) + 1 if parts else 0
        while True:
            part = self.folder / f"part-{number:06d}.parquet"
            draft = self.folder / f".{part.name}.tmp"
            if _created(draft):
                if not part.exists():
                    return draft, part
                draft.unlink()
            number += 1


def _read(part: Path, columns: Mapping[str, Any]) -> Any:
    try:
        with pq.ParquetFile(part) as file:
            return file.read().select(list(columns)).cast(pa.schema(columns))
    except (pa.ArrowException, OSError, KeyError) as error:
        raise RunFolderError(f"{part} cannot be read: {error}") from error


def _number(part: Path) -> int:
    match = PART.fullmatch(part.name)
    assert match is not None
    return int(match[1])


def _created(path: Path) -> bool:
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
