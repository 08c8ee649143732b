# SPDX-License-Identifier: Apache-2.0
"""docs/theory.md names tests and words of the code that exist."""

import re
from pathlib import Path

from equivariance import ARCHITECTURES, Axis

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")


def test_every_test_that_it_names_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)
    assert len(named) > 25
    missing = [
        f"{path}::{name}"
        for path, name in named
        if not (ROOT / path).is_file()
        or f"def {name}(" not in (ROOT / path).read_text(encoding="utf-8")
    ]
    assert missing == []


def test_every_label_and_architecture_is_in_its_tables() -> None:
    for word in (*(axis.name for axis in Axis), *ARCHITECTURES):
        assert f"`{word}`" in TEXT
