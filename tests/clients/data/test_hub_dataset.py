# SPDX-License-Identifier: Apache-2.0
"""Hugging Face data sets, from local Parquet files."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
from PIL import Image

from clients.data import ATTRIBUTES, DataError, DataSpec, check_source, load_auxiliary, load_shard

Save = Callable[..., str]
Change = Callable[[str, list[Any]], list[Any] | None]


def rows(count: int, first: int, packed: bool) -> dict[str, Any]:
    """Make columns: two images for each person, a plain grey that tells the row."""
    rng = np.random.default_rng(first)
    labels = rng.integers(0, 2, (count, len(ATTRIBUTES)))
    columns: dict[str, Any] = {
        "image": [png(first + number) for number in range(count)],
        "celeb_id": [(first + number) // 2 for number in range(count)],
    }
    if packed:
        columns["attributes"] = labels.tolist()
    else:
        columns |= {name: labels[:, at].astype(bool) for at, name in enumerate(ATTRIBUTES)}
    return columns


def png(grey: int) -> dict[str, Any]:
    file = io.BytesIO()
    Image.new("RGB", (178, 218), (grey, grey, grey)).save(file, "PNG")
    return {"bytes": file.getvalue(), "path": None}


@pytest.fixture
def save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Save:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hf")

    def write(name: str = "faces", packed: bool = False, **changes: Change) -> str:
        folder = tmp_path / name
        folder.mkdir()
        for part, count, first in (("train", 12, 0), ("validation", 4, 100), ("test", 6, 200)):
            columns = rows(count, first, packed)
            columns |= {key: change(part, columns[key]) for key, change in changes.items()}
            columns = {key: value for key, value in columns.items() if value is not None}
            part_data = datasets.Dataset.from_dict(columns).cast_column("image", datasets.Image())
            part_data.to_parquet(folder / f"{part}-00000-of-00001.parquet")
        return f"hf:{folder}"

    return write


@pytest.mark.parametrize("packed", [False, True])  # 40 yes/no columns, or one of 40 values
def test_rows_are_read(save: Save, tmp_path: Path, packed: bool) -> None:
    spec = DataSpec(data=save(packed=packed), image_size=8, cache_dir=str(tmp_path / "cache"))
    shard = load_shard(spec, partition_id=0, num_partitions=1, split="test")
    expected = np.random.default_rng(200).integers(0, 2, (6, 40))
    assert np.array_equal(shard.labels, expected)
    assert shard.images[:, 4, 4, 0].tolist() == [200, 201, 202, 203, 204, 205]
    assert shard.indices.tolist() == [16, 17, 18, 19, 20, 21]
    assert shard.identities.tolist() == [100, 100, 101, 101, 102, 102]
    assert len(load_auxiliary(spec)) == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        # columns of the schema are absent
        (
            {"celeb_id": lambda part, old: None, "Male": lambda part, old: None},
            "split test: missing columns celeb_id, Male",
        ),
        # who is on it is no number
        (
            {"celeb_id": lambda part, old: [f"person {who}" for who in old]},
            "split train: column celeb_id must hold whole numbers",
        ),
        # a label that is neither yes nor no
        (
            {"Male": lambda part, old: [2 * value for value in old]},
            "attributes must be yes/no, 0/1 or -1/1: row",
        ),
        # labels that are absent
        ({"Male": lambda part, old: [*old[:-1], None]}, "row 5 Male = nan"),
        # packed labels of another number
        ({"attributes": lambda part, old: [row[:39] for row in old]}, "40 yes/no values"),
        # a person of train is in test
        (
            {"celeb_id": lambda part, old: [who % 100 for who in old]},
            "identity 0 is in train and test",
        ),
        # the files of the splits do not fit together
        ({"celeb_id": lambda part, old: list("abcdef") if part == "test" else old}, "loaded: "),
    ],
)
def test_bad_columns_are_named(
    save: Save, tmp_path: Path, changes: dict[str, Change], message: str
) -> None:
    packed = "attributes" in changes
    spec = DataSpec(data=save(packed=packed, **changes), image_size=8, cache_dir=str(tmp_path))
    with pytest.raises(DataError) as raised:
        check_source(spec)
    assert message in str(raised.value)


def test_image_without_data_is_named(save: Save, tmp_path: Path) -> None:
    data = save(image=lambda part, old: [*old[:-1], {"bytes": b"no image", "path": None}])
    spec = DataSpec(data=data, image_size=8, auxiliary=0, cache_dir=str(tmp_path / "cache"))
    with pytest.raises(DataError, match="test: 1 of 6 images cannot be decoded: test/5") as raised:
        check_source(spec, decode=True)
    assert len(raised.value.problems) == 3


def test_unloadable_data_set_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="cannot be loaded"):
        check_source(DataSpec(data=f"hf:{tmp_path / 'empty'}", image_size=8))


def test_absent_split_is_named(save: Save, tmp_path: Path) -> None:
    data = save()
    (tmp_path / "faces" / "test-00000-of-00001.parquet").unlink()
    with pytest.raises(DataError, match="missing splits test"):
        check_source(DataSpec(data=data, image_size=8))
