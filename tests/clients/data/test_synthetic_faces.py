# SPDX-License-Identifier: Apache-2.0
"""Drawn faces as a source."""

from pathlib import Path

import numpy as np
import pytest

from clients import faces
from clients.data import DataError, DataSpec, check_source, load_shard
from clients.data.sources import open_source


def test_images_and_labels_are_the_drawn_ones(tmp_path: Path) -> None:
    spec = DataSpec(data="synthetic:60", image_size=16, auxiliary=0, cache_dir=str(tmp_path))
    shard = load_shard(spec, partition_id=0, num_partitions=1, split="test")
    images, attributes, identities = faces.generate_faces(60, size=16)
    assert np.array_equal(shard.images, images[shard.indices])
    assert np.array_equal(shard.labels, attributes[shard.indices])
    assert np.array_equal(shard.identities, identities[shard.indices])


def test_splits_are_about_70_10_20(tmp_path: Path) -> None:
    spec = DataSpec(data="synthetic:1000", image_size=16, auxiliary=0, cache_dir=str(tmp_path))
    images = check_source(spec).images
    assert images == {"train": 700, "validation": 100, "test": 200, "auxiliary": 0}


def test_faces_do_not_depend_on_the_seed_of_the_run(tmp_path: Path) -> None:
    parts = [
        load_shard(
            DataSpec(data="synthetic:30", image_size=16, seed=seed, cache_dir=str(tmp_path)),
            partition_id=0,
            num_partitions=1,
            split="test",
        )
        for seed in (0, 1)
    ]
    assert np.array_equal(parts[0].images, parts[1].images)


def test_fingerprint_follows_number_and_code(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [open_source(f"synthetic:{count}") for count in (30, 31)]
    assert len({source.fingerprint() for source in sources}) == 2
    before = sources[0].fingerprint()
    monkeypatch.setitem(vars(sources[0]), "_drawing_code", "other")
    assert sources[0].fingerprint() != before


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("synthetic:0", "expected synthetic:N"),  # no image
        ("synthetic:-5", "expected synthetic:N"),  # negative
        ("synthetic:many", "expected synthetic:N"),  # no number
        ("synthetic:1.5", "expected synthetic:N"),  # no whole number
        ("synthetic", "expected synthetic:N"),  # no argument
        ("synthetic:29", "at least 30"),  # too few for three splits
        ("syntetic:30", "did you mean 'synthetic'?"),  # misspelt
        ("s3:bucket", "allowed: synthetic, celeba, hf"),  # unknown
        ("celeba:/no/such/folder", "no such folder"),  # absent
    ],
)
def test_bad_data_is_named(data: str, message: str) -> None:
    with pytest.raises(DataError) as raised:
        check_source(DataSpec(data=data, image_size=16))
    assert message in str(raised.value)


@pytest.mark.parametrize("size", [0, 15, 513])
def test_size_out_of_range_is_named(size: int) -> None:
    with pytest.raises(DataError, match=f"image-size = {size}: must be 16 to 512 pixels"):
        check_source(DataSpec(data="synthetic:30", image_size=size))
