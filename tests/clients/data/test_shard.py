# SPDX-License-Identifier: Apache-2.0
"""What clients and the attacker get, end to end."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from clients.data import (
    ATTRIBUTES,
    PARTITIONS,
    SPLITS,
    DataError,
    DataSpec,
    Shard,
    check_source,
    load_auxiliary,
    load_dataset,
    load_shard,
)
from clients.data.pixels import decode_square

Make = Callable[..., DataSpec]


def all_shards(spec: DataSpec, clients: int) -> dict[str, list[Shard]]:
    return {
        split: [
            load_shard(spec, partition_id=client, num_partitions=clients, split=split)
            for client in range(clients)
        ]
        for split in SPLITS[:3]
    }


@pytest.mark.parametrize("partition", sorted(PARTITIONS))
def test_shards_are_the_split(make_spec: Make, tiny: Path, partition: str) -> None:
    spec = make_spec(partition=partition, dirichlet_alpha=5.0)
    rows = load_dataset(spec).to_pandas()
    shards = all_shards(spec, 3)
    for split, parts in shards.items():
        indices = np.concatenate([part.indices for part in parts])
        assert sorted(indices) == rows["index"][rows["split"] == split].tolist()
    for shard in [*shards["train"], *shards["test"], load_auxiliary(spec)]:
        expected = rows.iloc[shard.indices]
        assert shard.images.shape == (len(shard), 16, 16, 3)
        assert shard.attributes == ATTRIBUTES
        assert np.array_equal(shard.identities, expected["identity"])
        assert np.array_equal(
            shard.labels, np.array(expected["attributes"].tolist()).reshape(-1, 40)
        )
        for pixels, name in zip(shard.images, expected["image"], strict=True):
            assert np.array_equal(pixels, decode_square(tiny / "img_align_celeba" / name, 16))


def test_no_identity_is_shared(make_spec: Make) -> None:
    spec = make_spec(partition="identity")
    shards = [shard for parts in all_shards(spec, 3).values() for shard in parts]
    people = [set(shard.identities.tolist()) for shard in [*shards, load_auxiliary(spec)]]
    assert sum(map(len, people)) == len(set.union(*people)) == 12
    assert [len(each) for each in people] == [2, 2, 2, 1, 1, 0, 1, 1, 0, 2]


def test_repeated_load_is_the_same_object(make_spec: Make) -> None:
    ask = {"partition_id": 1, "num_partitions": 2, "split": "train"}
    shard = load_shard(make_spec(), **ask)
    assert load_shard(make_spec(), **ask) is shard
    assert load_auxiliary(make_spec()) is load_auxiliary(make_spec())
    for array in (shard.images, shard.labels, shard.identities, shard.indices):
        assert not array.flags.writeable


def test_equal_specs_are_equal_in_another_cache(make_spec: Make, tmp_path: Path) -> None:
    for partition in PARTITIONS:
        first = all_shards(make_spec(partition=partition, dirichlet_alpha=5.0), 2)
        again = all_shards(
            make_spec(partition=partition, dirichlet_alpha=5.0, cache_dir=str(tmp_path / "b")), 2
        )
        for split in first:
            for one, other in zip(first[split], again[split], strict=True):
                assert np.array_equal(one.indices, other.indices)
                assert np.array_equal(one.images, other.images)


def test_no_auxiliary(make_spec: Make) -> None:
    spec = make_spec(auxiliary=0.0)
    assert len(load_auxiliary(spec)) == 0
    assert load_auxiliary(spec).images.shape == (0, 16, 16, 3)
    shard = load_shard(spec, partition_id=0, num_partitions=1, split="train")
    assert len(shard) == 32


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        ({"split": "valid"}, "did you mean 'validation'?"),  # misspelt
        ({"split": "auxiliary"}, "use load_auxiliary"),  # the attacker's
        ({"partition_id": 2}, "partition id = 2: must be from 0 to 1"),  # too large
        ({"partition_id": -1}, "partition id = -1"),  # negative
        ({"num_partitions": 0}, "number of clients = 0"),  # none
        ({"num_partitions": 33}, "33 clients, 24 training images"),  # too many
    ],
)
def test_bad_request_is_named(make_spec: Make, ask: dict[str, object], message: str) -> None:
    defaults = {"partition_id": 0, "num_partitions": 2, "split": "train"}
    with pytest.raises(DataError) as raised:
        load_shard(make_spec(), **(defaults | ask))  # type: ignore[arg-type]
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"image_size": 0}, "image-size = 0"),
        ({"dirichlet_alpha": 0.0}, "dirichlet-alpha = 0.0: must be above 0"),
        ({"dirichlet_alpha": float("nan")}, "dirichlet-alpha = nan"),
        ({"auxiliary": 0.95}, "auxiliary = 0.95: must be a share from 0 to 0.9"),
        ({"seed": -1}, "seed = -1"),
        ({"partition": "random"}, "allowed: iid, identity, dirichlet"),
    ],
)
def test_bad_spec_is_named(make_spec: Make, changes: dict[str, object], message: str) -> None:
    for ask in (check_source, load_auxiliary, load_dataset):
        with pytest.raises(DataError) as raised:
            ask(make_spec(**changes))
        assert message in str(raised.value)


def truncate(tiny: Path, name: str) -> None:
    path = tiny / "img_align_celeba" / name
    path.write_bytes(path.read_bytes()[:-600])


def test_truncated_images_are_named(make_spec: Make, tiny: Path) -> None:
    spec = make_spec()
    rows = load_dataset(spec).to_pandas()
    names = [rows["image"][rows["split"] == split].iloc[0] for split in ("train", "auxiliary")]
    for name in names:
        truncate(tiny, name)
    check_source(spec, num_partitions=2)  # reads no pixels
    with pytest.raises(DataError) as raised:
        check_source(spec, num_partitions=2, decode=True)
    assert len(raised.value.problems) == 2
    assert all(name in str(raised.value) for name in names)
    with pytest.raises(DataError, match=rf"{names[1]} \(image file is truncated"):
        load_auxiliary(spec)


def test_check_with_decoding_fills_the_cache(make_spec: Make, tiny: Path) -> None:
    spec = make_spec()
    check_source(spec, num_partitions=2, decode=True)
    for name in ("000001.jpg", "000002.jpg"):
        (tiny / "img_align_celeba" / name).write_bytes(b"")  # in place: the cache is not asked
    assert sum(len(part) for part in all_shards(spec, 2)["train"]) == 24
    assert len(load_auxiliary(spec)) == 8


def test_summary(make_spec: Make) -> None:
    spec = make_spec(partition="identity")
    summary = check_source(spec, num_partitions=2)
    assert summary.images == {"train": 24, "validation": 8, "test": 8, "auxiliary": 8}
    assert summary.identities == {"train": 6, "validation": 2, "test": 2, "auxiliary": 2}
    assert summary.shards == {"train": (12, 12), "validation": (4, 4), "test": (4, 4)}
    assert check_source(spec).shards == {}
    labels = load_shard(spec, partition_id=0, num_partitions=1, split="test").labels
    share = labels[:, ATTRIBUTES.index("Smiling")].mean()
    assert summary.majority_floor["Smiling"] == pytest.approx(max(share, 1 - share))


def test_error_survives_pickling() -> None:
    import pickle

    error = pickle.loads(pickle.dumps(DataError("one", "two")))
    assert error.problems == ("one", "two")
    assert str(error) == "2 problems with the data:\n  - one\n  - two"
