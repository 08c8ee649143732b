# SPDX-License-Identifier: Apache-2.0
"""Every row has one client; identities stay whole where they must."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clients.data import PARTITIONS, DataError, DataSpec
from clients.data.partition import UNOWNED, assign_clients
from clients.data.schema import ATTRIBUTES, SPLITS, Table

MALE = ATTRIBUTES.index("Male")


def table(sizes: list[int], splits: list[int]) -> Table:
    """Make ``sizes[k]`` rows of identity k in split ``splits[k]``; every second row is Male."""
    count = sum(sizes)
    attributes = np.zeros((count, len(ATTRIBUTES)), np.uint8)
    attributes[::2, MALE] = 1
    return Table(
        identity=np.repeat(np.arange(len(sizes)), sizes),
        split=np.repeat(np.array(splits, np.uint8), sizes),
        attributes=attributes,
        image=np.arange(count).astype(np.str_),
    )


def spec(partition: str, **changes: object) -> DataSpec:
    return DataSpec(data="made:up", image_size=8, partition=partition, **changes)  # type: ignore[arg-type]


@settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(
    sizes=st.lists(st.integers(1, 6), min_size=12, max_size=24),
    clients=st.integers(1, 5),
    seed=st.integers(0, 1000),
    partition=st.sampled_from(sorted(PARTITIONS)),
)
def test_each_row_has_one_client(sizes: list[int], clients: int, seed: int, partition: str) -> None:
    splits = [1, 2, 3] + [0] * (len(sizes) - 3)
    made = table(sizes, splits)
    asked = spec(partition, seed=seed, dirichlet_alpha=5.0)
    owners = assign_clients(made, asked, clients)
    assert np.array_equal(owners == UNOWNED, made.split == SPLITS.index("auxiliary"))
    assert owners.max() < clients
    assert set(owners[made.rows("train")]) == set(range(clients))
    assert np.array_equal(owners, assign_clients(made, asked, clients))
    if partition == "identity":
        pairs = np.unique(np.stack([made.identity, owners]), axis=1)
        assert len(np.unique(pairs[0])) == pairs.shape[1]
    if partition == "iid":
        counts = np.bincount(owners[made.rows("train")], minlength=clients)
        assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize(
    ("sizes", "clients", "expected"),
    [
        ([30] * 8, 4, [60, 60, 60, 60]),  # identities of one size, as even as can be
        ([30] * 10, 4, [60, 60, 90, 90]),  # a number that is no multiple of the clients
        ([9, 5, 4, 1, 1], 2, [10, 10]),  # large identities first, small ones fill up
        ([50, 1, 1, 1], 3, [1, 2, 50]),  # one identity larger than a fair share
    ],
)
def test_identity_sizes_are_balanced(sizes: list[int], clients: int, expected: list[int]) -> None:
    owners = assign_clients(table(sizes, [0] * len(sizes)), spec("identity"), clients)
    assert sorted(np.bincount(owners).tolist()) == expected


def test_fewer_test_identities_than_clients_leave_empty_shards() -> None:
    made = table([4] * 6, [0, 0, 0, 0, 1, 2])
    for partition, most in (("identity", 1), ("iid", 4), ("dirichlet", 4)):
        owners = assign_clients(made, spec(partition, dirichlet_alpha=10.0), 4)
        assert len(set(owners[made.rows("test")])) <= most
        assert owners[made.rows("test")].min() >= 0


def test_more_clients_than_test_images() -> None:
    made = table([20, 1, 1], [0, 1, 2])
    for partition in ("iid", "dirichlet"):
        owners = assign_clients(made, spec(partition, dirichlet_alpha=100.0), 5)
        assert (owners >= 0).all()


def test_iid_mixes_identities() -> None:
    made = table([10] * 20, [0] * 20)
    owners = assign_clients(made, spec("iid"), 4)
    assert all(len(set(made.identity[owners == client])) > 10 for client in range(4))


def test_dirichlet_skews_the_attribute_alike_in_all_splits() -> None:
    made = table([600, 600, 600], [0, 1, 2])
    owners = assign_clients(made, spec("dirichlet", dirichlet_alpha=0.5, seed=3), 4)
    share = {
        split: [
            made.attributes[made.rows(split)][owners[made.rows(split)] == client, MALE].mean()
            for client in range(4)
        ]
        for split in ("train", "test")
    }
    assert max(share["train"]) - min(share["train"]) > 0.2
    assert np.allclose(share["train"], share["test"], atol=0.05)


@pytest.mark.parametrize(
    ("partition", "sizes", "changes", "message"),
    [
        # fewer images than clients
        ("iid", [3], {}, "more clients than images: 4 clients, 3 training images"),
        # enough images, but of too few people
        ("identity", [30] * 3, {}, "more clients than identities: 4 clients, 3 training"),
        # hardly ever an image for each client
        ("dirichlet", [40], {"dirichlet_alpha": 1e-4}, "dirichlet-alpha = 0.0001: too skewed"),
    ],
)
def test_idle_client_is_an_error(
    partition: str, sizes: list[int], changes: dict[str, float], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        assign_clients(table(sizes, [0] * len(sizes)), spec(partition, **changes), 4)
