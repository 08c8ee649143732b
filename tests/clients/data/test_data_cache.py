# SPDX-License-Identifier: Apache-2.0
"""Pixels are decoded once, and a damaged or stale cache is never served."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from clients.data import DataError, DataSpec, check_source, load_shard
from clients.data.cache import cached_arrays, cached_pixels
from clients.data.sources.celeba import CelebaFolder

SIZE = 4


class Reader:
    """Counts what it decodes: the picture of row r is all r."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, image: str, size: int) -> np.ndarray:
        self.asked.append(image)
        return np.full((size, size, 3), int(image), np.uint8)


def pixels(folder: Path, rows: list[int], read: Reader) -> np.ndarray:
    numbers = np.array(rows, np.int64)
    return cached_pixels(folder, numbers, numbers.astype(np.str_), SIZE, read)


def test_decoded_once_however_divided(tmp_path: Path) -> None:
    read = Reader()
    first = pixels(tmp_path, [1, 3, 5], read)
    assert first[:, 0, 0, 0].tolist() == [1, 3, 5]
    assert pixels(tmp_path, [1, 3, 5], read)[:, 0, 0, 0].tolist() == [1, 3, 5]
    assert pixels(tmp_path, [1, 2, 5, 9], read)[:, 0, 0, 0].tolist() == [1, 2, 5, 9]
    assert sorted(read.asked) == ["1", "2", "3", "5", "9"]
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 0


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",  # empty
        lambda content: content[: len(content) // 2],  # truncated in the pixels
        lambda content: content[:-4],  # truncated in the rows
        lambda content: bytes(len(content)),  # zeros, as after a power cut
        lambda content: b"no array at all",  # something else
    ],
)
def test_damaged_file_is_rebuilt(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    read = Reader()
    pixels(tmp_path, [1, 3], read)
    (file,) = tmp_path.rglob("*.npy")
    sound = file.read_bytes()
    file.unlink()
    file.write_bytes(damage(sound))
    assert pixels(tmp_path, [1, 3], read)[:, 0, 0, 0].tolist() == [1, 3]
    assert len(read.asked) == 4
    assert file.read_bytes() == sound


@pytest.mark.parametrize("content", [b"", b"PK broken", b"\x93NUMPY"])
def test_damaged_table_is_rebuilt(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "table.npz"
    path.write_bytes(content)
    for _ in range(2):
        assert cached_arrays(path, lambda: {"a": np.arange(3)})["a"].tolist() == [0, 1, 2]


def test_failed_decoding_leaves_no_file(tmp_path: Path) -> None:
    def read(image: str, size: int) -> np.ndarray:
        raise OSError("image file is truncated")

    with pytest.raises(DataError, match=r"3 of 3 images cannot be decoded: 1 \(image file is tr"):
        pixels(tmp_path, [1, 2, 3], read)  # type: ignore[arg-type]
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_unwritable_cache_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(DataError, match="cache-dir: cannot write"):
        pixels(tmp_path / "file", [1], Reader())


WRITER = """
import sys
from pathlib import Path
import numpy as np
from clients.data.cache import cached_pixels
rows = np.arange(2000)
read = lambda image, size: np.full((size, size, 3), int(image) % 256, np.uint8)
pixels = cached_pixels(Path(sys.argv[1]), rows, rows.astype(np.str_), 4, read)
assert (pixels == (rows % 256)[:, None, None, None]).all()
"""


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen(command, env=environment) for _ in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1


def touch_tables(folder: Path) -> None:
    table = folder / "list_attr_celeba.txt"
    os.utime(table, ns=(0, 1))


def add_image(folder: Path) -> None:
    (folder / "img_align_celeba" / "new.jpg").write_bytes(b"")


def replace_image(folder: Path) -> None:
    other = folder / "img_align_celeba" / "other"
    other.write_bytes(b"")
    other.replace(folder / "img_align_celeba" / "000001.jpg")


@pytest.mark.parametrize("change", [touch_tables, add_image, replace_image])
def test_fingerprint_follows_the_folder(tiny: Path, change: Callable[[Path], None]) -> None:
    source = CelebaFolder(str(tiny))
    before = source.fingerprint()
    assert source.fingerprint() == before
    os.utime(tiny / "img_align_celeba", ns=(0, 2))
    before = source.fingerprint()
    change(tiny)
    assert source.fingerprint() != before


def test_changed_source_is_read_again(make_spec: Callable[..., DataSpec], tiny: Path) -> None:
    ask = {"partition_id": 0, "num_partitions": 1, "split": "train"}
    spec = make_spec()
    old = load_shard(spec, **ask)
    assert load_shard(spec, **ask) is old
    name = f"{old.indices[0] + 1:06d}.jpg"
    Image.new("RGB", (178, 218), "white").save(tiny / "new.jpg")
    (tiny / "new.jpg").replace(tiny / "img_align_celeba" / name)
    new = load_shard(spec, **ask)
    assert (new.images[0] == 255).all()
    assert np.array_equal(new.images[1:], old.images[1:])


WARM = """
import sys
from clients.data import DataSpec, load_shard
spec = DataSpec(data=sys.argv[1], image_size=16, cache_dir=sys.argv[2], partition="identity")
assert len(load_shard(spec, partition_id=1, num_partitions=2, split="train"))
heavy = {"datasets", "flwr_datasets", "pandas", "torch"} & set(sys.modules)
assert not heavy, heavy
"""


def test_warm_cache_needs_no_heavy_import(make_spec: Callable[..., DataSpec]) -> None:
    spec = make_spec(partition="identity")
    check_source(spec, num_partitions=2, decode=True)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
    command = [sys.executable, "-c", WARM, spec.data, spec.cache_dir]
    subprocess.run(command, env=environment, check=True, timeout=60)
