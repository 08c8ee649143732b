# SPDX-License-Identifier: Apache-2.0
"""docs/configuration.md says what the code does."""

from pathlib import Path

from clients.app import LOCAL_KEYS
from config import RESUME_KEYS, keys
from config.table import GROUPS, NODE_KEYS, markdown_table, page

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "configuration.md"


def test_the_document_is_up_to_date() -> None:
    """If this fails: ``python -m config.table > docs/configuration.md``."""
    assert DOCUMENT.read_text(encoding="utf-8") == page()


def test_every_key_has_one_row() -> None:
    rows = [line for line in markdown_table().splitlines() if line.startswith("| `")]
    assert [row.split("`")[1] for row in rows] == list(keys())
    assert {row.count("|") for row in rows} == {6}


def test_groups_begin_at_keys_that_exist() -> None:
    assert list(GROUPS) == [key for key in keys() if key in GROUPS]


def test_the_keys_that_may_change_are_those_of_the_code() -> None:
    assert set(NODE_KEYS) == set(LOCAL_KEYS)
    assert set(RESUME_KEYS) < set(keys())
