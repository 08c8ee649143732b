# SPDX-License-Identifier: Apache-2.0
"""The order of a client's images: every image once an epoch, a pure function of the step."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from clients.order import evaluation_rows, training_rows

quick = settings(deadline=None, max_examples=40, derandomize=True)


@quick
@given(st.integers(1, 12), st.integers(1, 15), st.integers(0, 5))
def test_each_image_comes_once_an_epoch(count: int, batch: int, client: int) -> None:
    size = min(batch, count)
    batches = [training_rows(count, batch, p, seed=3, client=client) for p in range(3 * count)]
    assert {len(rows) for rows in batches} == {size}
    row = np.concatenate(batches)[: size * 3 * count // count * count]
    for epoch in row.reshape(-1, count):
        assert sorted(epoch) == list(range(count))


def test_epochs_clients_and_seeds_differ() -> None:
    drawn = [
        tuple(training_rows(50, 50, position, seed=seed, client=client))
        for position, seed, client in [(0, 0, 0), (1, 0, 0), (0, 0, 1), (0, 1, 0)]
    ]
    assert len(set(drawn)) == 4
    assert tuple(range(50)) not in drawn


def test_the_order_is_the_same_in_every_process() -> None:
    # Recorded: nothing of a process (its hash seed, its history) may take part.
    assert training_rows(9, 4, 7, seed=5, client=2).tolist() == [6, 1, 7, 2]


@quick
@given(st.integers(1, 30), st.integers(1, 12))
def test_evaluation_sees_all_images_in_order(count: int, batch: int) -> None:
    pieces = [evaluation_rows(count, batch, index) for index in range(-(-count // batch))]
    assert np.concatenate(pieces).tolist() == list(range(count))
    assert all(len(piece) for piece in pieces)
