# SPDX-License-Identifier: Apache-2.0
"""All keys of a run as Markdown: ``python -m config.table > docs/configuration.md``."""

import json
import sys
from collections.abc import Iterator
from typing import Any, get_args

from pydantic.fields import FieldInfo

from config.fields import RESUME_KEYS, RunConfig

GROUPS = {
    "data": "Data",
    "model": "Model",
    "permute": "Privacy",
    "schedule": "Training",
    "min-clients": "Federation",
    "runs-dir": "Results",
}
"""The first key of each group, in the order of :class:`~config.fields.RunConfig`."""

NODE_KEYS = ("data", "weights", "cache-dir", "key-dir", "state-dir")
"""Keys that a node may set for itself: ``clients.app.LOCAL_KEYS``, which a test compares."""

_BOUNDS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}

_INTRODUCTION = """\
<!-- Generated from config/fields.py by `python -m config.table`. Change the fields, not this. -->

# Configuration

A run has a flat list of keys. Their defaults are those of the preset `smoke`. All problems of a
configuration are reported together, each with what is allowed; an unknown key is a problem too.

Keys are set in this order, later ones win:

1. the defaults below, which are also `[tool.flwr.app.config]` in `pyproject.toml`;
2. a preset or any TOML file: `permsplit run --preset NAME`, or
   `flwr run . --run-config presets/NAME.toml`;
3. single keys: `permsplit run --set KEY=VALUE` (may be repeated).

`permsplit run` makes the paths in `data`, `weights`, `cache-dir`, `key-dir`, `state-dir`,
`runs-dir` and `attack-face` absolute. `flwr run` does not, and the apps work in folders of Flower's
choosing: write absolute paths there.

The column *may change* says who else may set a key:

- **node**: a client's node may set it, for itself alone, by `flower-supernode --node-config`;
- **resume**: a resumed run may change it. Other keys can change the numbers of a run, so a
  resumed run that differs in one is refused.
"""


def page() -> str:
    """The whole of ``docs/configuration.md``."""
    return f"{_INTRODUCTION}\n{markdown_table()}"


def markdown_table() -> str:
    """A table for each group of keys, in the order of their declaration."""
    return "\n".join(_lines()).lstrip("\n") + "\n"


def allowed(field: FieldInfo) -> str:
    """What a key takes: its choices, or its type and bounds."""
    choices = get_args(field.annotation)
    if choices:
        return ", ".join(f"`{_toml(choice)}`" for choice in choices)
    kind: Any = field.annotation
    return ", ".join([{"str": "text"}.get(kind.__name__, kind.__name__), *_rules(field)])


def _lines() -> Iterator[str]:
    for field in RunConfig.model_fields.values():
        key = str(field.alias)
        if key in GROUPS:
            yield from ("", f"## {GROUPS[key]}", "")
            yield "| key | allowed | default | meaning | may change |"
            yield "|---|---|---|---|---|"
        default, changes = f"`{_toml(field.default)}`", ", ".join(_changes(key))
        yield f"| `{key}` | {allowed(field)} | {default} | {field.description} | {changes} |"


def _changes(key: str) -> Iterator[str]:
    if key in NODE_KEYS:
        yield "node"
    if key in RESUME_KEYS:
        yield "resume"


def _rules(field: FieldInfo) -> Iterator[str]:
    for rule in field.metadata:
        for name, sign in _BOUNDS.items():
            bound = getattr(rule, name, None)
            if bound is not None:
                yield f"{sign} {'2^63' if bound == 2**63 else bound}"
        if getattr(rule, "min_length", None):
            yield "not empty"
        if pattern := getattr(rule, "pattern", None):
            yield f"matches `{pattern}`"


def _toml(value: object) -> str:
    """Text, numbers and truth values, which JSON writes as TOML does."""
    return json.dumps(value)


if __name__ == "__main__":
    sys.stdout.write(page())
