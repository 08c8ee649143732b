# SPDX-License-Identifier: Apache-2.0
"""``permsplit keys``: every key of a run."""

from collections.abc import Iterator
from typing import Any, get_args

from pydantic.fields import FieldInfo
from rich.console import Console
from rich.table import Table

from config import RunConfig

_SIGNS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


def keys() -> None:
    """Print every key of a run: what is allowed, its default and what it means."""
    console = Console()
    if not console.is_terminal:  # a file or a pipe has no width: take enough
        console = Console(width=160)
    console.print(keys_table())


def keys_table() -> Table:
    """A row for each key of :class:`config.RunConfig`, in the order of their declaration."""
    table = Table("key", "allowed", "default", "meaning", header_style="bold")
    table.columns[0].no_wrap = True
    for field in RunConfig.model_fields.values():
        default = str(field.default).lower() if field.annotation is bool else str(field.default)
        table.add_row(field.alias, allowed(field), default or '""', field.description)
    return table


def allowed(field: FieldInfo) -> str:
    """The type of a key and its bounds, or its choices."""
    choices = get_args(field.annotation)
    if choices:
        return " | ".join(str(choice) for choice in choices)
    kind: Any = field.annotation
    return ", ".join([kind.__name__, *_bounds(field)])


def _bounds(field: FieldInfo) -> Iterator[str]:
    for rule in field.metadata:
        for name, sign in _SIGNS.items():
            bound = getattr(rule, name, None)
            if bound is not None:
                yield f"{sign} {'2^63' if bound == 2**63 else bound}"
