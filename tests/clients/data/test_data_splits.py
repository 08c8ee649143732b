# SPDX-License-Identifier: Apache-2.0
"""Splits never share an identity."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.data.schema import ATTRIBUTES, SPLITS, Table
from clients.data.splits import set_auxiliary_aside, split_problems


def table(identity: list[int], split: list[int]) -> Table:
    count = len(identity)
    return Table(
        identity=np.array(identity, np.int64),
        split=np.array(split, np.uint8),
        attributes=np.zeros((count, len(ATTRIBUTES)), np.uint8),
        image=np.arange(count).astype(np.str_),
    )


@given(
    sizes=st.lists(st.integers(1, 5), min_size=4, max_size=20),
    share=st.floats(0, 0.9),
    seed=st.integers(0, 2**32),
)
def test_auxiliary_takes_whole_train_identities(sizes: list[int], share: float, seed: int) -> None:
    identity = np.repeat(np.arange(len(sizes)), sizes)
    source = table(identity.tolist(), np.where(identity < 2, identity + 1, 0).tolist())
    divided = set_auxiliary_aside(source, share, seed)
    people = {name: set(divided.identity[divided.rows(name)].tolist()) for name in SPLITS}
    assert sum(map(len, people.values())) == len(sizes)
    assert people["train"]
    assert bool(people["auxiliary"]) == (share > 0)
    assert people["validation"] == {0}
    assert people["test"] == {1}


def test_larger_share_contains_the_smaller() -> None:
    source = table(list(range(100)), [0] * 100)
    parts = [set_auxiliary_aside(source, share, 5).rows("auxiliary") for share in (0.1, 0.3)]
    assert [len(part) for part in parts] == [10, 30]
    assert set(parts[0]) < set(parts[1])


def test_seed_decides() -> None:
    source = table(list(range(100)), [0] * 100)
    first, again, other = (set_auxiliary_aside(source, 0.3, seed).split for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    ("identity", "split", "message"),
    [
        ([7, 7, 8], [0, 2, 1], "identity 7 is in train and test"),  # a person in two splits
        ([1, 2], [1, 2], "no image is in the train split"),  # nothing to train on
        ([1, 2], [0, 1], "no image is in the test split"),  # nothing to test on
    ],
)
def test_problems_are_named(identity: list[int], split: list[int], message: str) -> None:
    assert message in " ".join(split_problems(table(identity, split), "file"))


def test_empty_validation_is_allowed() -> None:
    assert split_problems(table([1, 2], [0, 2]), "file") == []
