# SPDX-License-Identifier: Apache-2.0
"""Tables in a terminal, whole: no cell is cut."""

import pandas as pd
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from reports.display import grid

__all__ = ["print_table"]


def print_table(console: Console, table: pd.DataFrame, title: str) -> None:
    """Print upright, or on its side if only that fits, or else as wide as it is."""
    upright, sideways = _rich(table, title), _rich(_transposed(table), title)
    if _width(console, upright) <= console.width or _width(console, sideways) > console.width:
        width = max(console.width, _width(console, upright))  # a console cuts what is wider
        Console(file=console.file, width=width).print(upright)
    else:
        console.print(sideways)


def _rich(table: pd.DataFrame, title: str) -> Table:
    heads, rows, numeric = grid(table)
    shown = Table(title=Text(title), title_justify="left")
    for head, right in zip(heads, numeric, strict=True):
        shown.add_column(Text(head), justify="right" if right else "left", no_wrap=True)
    for row in rows:
        shown.add_row(*(Text(text) for text in row))
    return shown


def _transposed(table: pd.DataFrame) -> pd.DataFrame:
    """First column as headings, the other columns as rows."""
    heads, rows, _ = grid(table)
    turned = [list(line) for line in zip(heads, *rows, strict=True)]
    return pd.DataFrame(turned[1:], columns=turned[0])


def _width(console: Console, table: Table) -> int:
    # Unbounded options: how wide the table wants to be, not how wide it may be.
    return Measurement.get(console, console.options.update(width=10_000), table).maximum
