# SPDX-License-Identifier: Apache-2.0
"""The columns of a run's tables, declared once, and rows checked against them."""

from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any

import pandas as pd
import pyarrow as pa

from reports.errors import RunFolderError

Rows = Iterable[Mapping[str, object]] | pd.DataFrame

METRICS: dict[str, Any] = {
    "round": pa.int64(),
    "split": pa.string(),  # train, validation, test
    "client": pa.int64(),  # -1: all clients together
    "attribute": pa.string(),  # a name; "mean" over attributes; "" where it does not apply
    "metric": pa.string(),  # loss, accuracy, balanced_accuracy, floor, learning_rate, ...
    "value": pa.float64(),
    "count": pa.int64(),  # images behind the value
}

LEDGER: dict[str, Any] = {
    "round": pa.int64(),
    "client": pa.int64(),  # -1: the server, or all clients together
    "leg": pa.string(),  # smashed, hidden, weights-up, trunk-compute, ...
    "phase": pa.string(),  # train, evaluate
    "direction": pa.string(),  # up, down, none
    "bytes": pa.int64(),
    "seconds": pa.float64(),
    "messages": pa.int64(),
    "images": pa.int64(),
}

ATTACKS: dict[str, Any] = {
    "attack": pa.string(),  # decoder, position, ...
    "variant": pa.string(),  # which of its ways, such as per-token, set; "": its only one
    "threat": pa.string(),  # name of the threat model
    "round": pa.int64(),  # round of the checkpoint attacked
    "client": pa.int64(),  # victim; -1: all clients together
    "seed": pa.int64(),  # of the attacker
    "defences": pa.string(),  # as in the run's config
    "defence_point": pa.string(),  # pixels, embedding
    "permute": pa.string(),  # none, row, column, row+column
    "rotation": pa.string(),  # sample, batch, round, fixed
    "edge_position": pa.string(),  # learned, none
    "metric": pa.string(),  # ssim, psnr, f_sim, position_accuracy, auc, ...
    "value": pa.float64(),  # mean over images
    "low": pa.float64(),  # bootstrap interval of 95 %; NaN: none
    "high": pa.float64(),
    "floor_mean_image": pa.float64(),  # the mean auxiliary image instead; NaN: does not apply
    "floor_random_image": pa.float64(),  # a random other image instead; NaN: does not apply
    "floor_untrained": pa.float64(),  # the attacker before it learned; NaN: does not apply
    "floor_chance": pa.float64(),  # guessing without looking; NaN: does not apply
    "embedder": pa.string(),  # network behind f_sim or lpips, "" otherwise
    "count": pa.int64(),  # images behind the value
}


def to_arrow(rows: Rows, columns: Mapping[str, Any], **fixed: object) -> Any:
    """Rows as a ``pyarrow.Table`` with exactly ``columns``, in their order.

    Parameters
    ----------
    rows : Iterable[Mapping[str, object]] | DataFrame
        One mapping a row, or a table.
    columns : Mapping[str, pyarrow.DataType]
        Names and types.
    **fixed : object
        Columns with one value for all rows; a row may repeat it, never contradict it.

    Raises
    ------
    RunFolderError
        Naming every unknown or missing column, or the column whose values do not fit its type.
    """
    records = [{**fixed, **row} for row in _records(rows)]
    _check_names(records, columns)
    _check_fixed(records, fixed)
    arrays = [_array(name, [row[name] for row in records], kind) for name, kind in columns.items()]
    fields = [pa.field(name, kind, nullable=False) for name, kind in columns.items()]
    return pa.table(arrays, schema=pa.schema(fields))


def _records(rows: Rows) -> list[dict[str, object]]:
    if isinstance(rows, pd.DataFrame):
        return [
            {str(name): value for name, value in row.items()} for row in rows.to_dict("records")
        ]
    return [dict(row) for row in rows]


def _check_names(records: list[dict[str, object]], columns: Mapping[str, Any]) -> None:
    for index, row in enumerate(records):
        unknown = sorted(row.keys() - columns.keys())
        missing = [name for name in columns if name not in row]
        problems = [f"unknown column {name!r}" for name in unknown]
        problems += [f"missing column {name!r}" for name in missing]
        if problems:
            allowed = ", ".join(columns)
            raise RunFolderError(f"row {index}: {', '.join(problems)}; the columns are {allowed}")


def _check_fixed(records: list[dict[str, object]], fixed: Mapping[str, object]) -> None:
    for index, row in enumerate(records):
        for name, value in fixed.items():
            if row[name] != value:
                raise RunFolderError(
                    f"row {index}: column {name!r} is {row[name]!r}, but {value!r} is being written"
                )


def _array(name: str, values: list[object], kind: Any) -> Any:
    if pa.types.is_integer(kind):  # pyarrow would cut 1.5 to 1
        for index, value in enumerate(values):
            if value is not None and not isinstance(value, Integral):
                raise RunFolderError(f"column {name!r} must be {kind}: row {index} has {value!r}")
    try:
        array = pa.array(values, kind, from_pandas=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise RunFolderError(f"column {name!r} must be {kind}: {error}") from error
    if array.null_count:
        raise RunFolderError(f"column {name!r} has no value in row {values.index(None)}")
    return array
