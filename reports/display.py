# SPDX-License-Identifier: Apache-2.0
"""Tables for people: headings with units, numbers cut to what they tell."""

import math
from collections.abc import Callable, Mapping, Sequence

import pandas as pd

MISSING = "–"  # noqa: RUF001 - an en dash for what was not measured
Cells = list[list[str]]


def percent(share: float) -> str:
    """A share of 0 .. 1 in percent: ``0.8756`` is ``87.56``."""
    return f"{100 * share:.2f}"


def signed_percent(share: float) -> str:
    """A difference of shares in percentage points, with its sign: ``+7.56``."""
    return f"{100 * share:+.2f}"


def number(value: float) -> str:
    """Four significant digits, never an exponent for numbers of everyday size."""
    if value == 0 or 1e-4 <= abs(value) < 1e9:
        digits = 3 - math.floor(math.log10(abs(value))) if value else 0
        return f"{value:,.{max(0, digits)}f}"
    return f"{value:.3e}"


def whole(value: float) -> str:
    """An integer with thousands apart."""
    return f"{int(value):,}"


def size(value: float) -> str:
    """Bytes with a decimal unit: ``1_234_567`` is ``1.23 MB``."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= scale:
            return f"{value / scale:.2f} {unit}"
    return f"{value:.0f} B"


def duration(seconds: float) -> str:
    """Seconds as people read them: ``12.3 s``, ``4 min 10 s``, ``2 h 05 min``."""
    if seconds < 1:
        return f"{1000 * seconds:.1f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


FORMATS: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "accuracy": ("accuracy %", percent),
    "balanced_accuracy": ("balanced accuracy %", percent),
    "floor": ("floor %", percent),
    "gain": ("gain, points", signed_percent),
    "loss": ("loss", number),
    "bytes": ("bytes", size),
    "bytes_per_step": ("bytes per step", size),
    "bytes_per_image": ("bytes per image", size),
    "seconds": ("time", duration),
    "time_share": ("share of time %", percent),
    "images_per_second": ("images/s", number),
    "images": ("images", whole),
    "messages": ("messages", whole),
    "count": ("images", whole),
}


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """``table`` as text, column by column; what was not measured reads as a dash.

    Attack results mix units (dB, shares, cosines) in a column, so theirs are plain numbers.
    """
    formats = {"count": FORMATS["count"]} if "attack" in table.columns else FORMATS
    columns = {}
    for name in table.columns:
        heading, show = formats.get(name, (str(name).replace("_", " "), None))
        columns[heading] = [cell(value, show) for value in table[name]]
    return pd.DataFrame(columns, dtype="object")


def cell(value: object, show: Callable[[float], str] | None = None) -> str:
    """One value as text."""
    if value is None or (isinstance(value, float) and math.isnan(value)) or value is pd.NA:
        return MISSING
    if isinstance(value, bool):
        return str(value).lower()
    if show is not None and not isinstance(value, str):
        return show(value)  # type: ignore[arg-type]
    return number(value) if isinstance(value, float) else str(value)


def grid(table: pd.DataFrame) -> tuple[list[str], Cells, Sequence[bool]]:
    """Headings, rows and which columns read as numbers (to be set flush right)."""
    heads = [str(name) for name in table.columns]
    rows = [[str(value) for value in row] for row in table.itertuples(index=False)]
    numeric = [_all_numbers([row[i] for row in rows]) for i in range(len(heads))]
    return heads, rows, numeric


def _all_numbers(cells: list[str]) -> bool:
    told = [text for text in cells if text != MISSING]
    return bool(told) and all(text[:1].isdigit() or text[:1] in "+-" for text in told)
