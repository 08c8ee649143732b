# SPDX-License-Identifier: Apache-2.0
"""Files computed once: pixels that memory-map, and small tables.

A file is complete or absent: it is written beside its place and moved there, so any number of
processes may write the same one at once. A file that is truncated or not what it should be is
computed again. Pixels divided anew among clients are copied from the files already there, so no
image is decoded twice. Files are readable by their owner only. One folder holds what belongs to one
version of one source::

    <cache-dir>/<scheme>-<fingerprint>/table.npz            the rows
    <cache-dir>/<scheme>-<fingerprint>/owners-<key>.npz     the client of each row
    <cache-dir>/<scheme>-<fingerprint>/<size>px/<key>.npy   pixels [N, size, size, 3], then rows [N]
"""

import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from .errors import DataError, some

__all__ = ["cached_arrays", "cached_pixels", "source_folder"]

FORMAT = 1
"""Part of every fingerprint: raise it when a file's content would differ for the same source."""

CHUNK = 256
THREADS = min(4, os.cpu_count() or 1)

ReadPixels = Callable[[str, int], NDArray[np.uint8]]


def source_folder(cache: Path, scheme: str, fingerprint: str) -> Path:
    """Return the folder of one version of one source."""
    return cache / f"{scheme}-{short_digest(f'{FORMAT} {fingerprint}'.encode())}"


def short_digest(content: bytes) -> str:
    """Return 24 hexadecimal digits that stand for the content."""
    return blake2b(content, digest_size=12).hexdigest()


def cached_arrays(
    path: Path, compute: Callable[[], Mapping[str, NDArray[Any]]]
) -> Mapping[str, NDArray[Any]]:
    """Return small arrays by name from a file, computing and keeping them if it is not sound."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, EOFError, ValueError, zipfile.BadZipFile):
        pass
    arrays = compute()
    with _whole_file(path) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
    return arrays


def cached_pixels(
    folder: Path, rows: NDArray[np.int64], images: NDArray[np.str_], size: int, read: ReadPixels
) -> NDArray[np.uint8]:
    """Return the pixels of some rows of a source, each decoded at most once.

    Parameters
    ----------
    folder : Path
        The source's folder in the cache.
    rows : NDArray[np.int64]
        Ascending row numbers. [N]
    images : NDArray[np.str_]
        The source's references to these rows' images. [N]
    size : int
        Side in pixels.
    read : ReadPixels
        Decodes one image, given its reference and the size.

    Returns
    -------
    NDArray[np.uint8]
        Memory-mapped, read-only. [N, size, size, 3]

    Raises
    ------
    DataError
        If images cannot be decoded, naming them, or if the cache cannot be written.
    """
    if not len(rows):
        return np.zeros((0, size, size, 3), np.uint8)
    path = folder / f"{size}px" / f"{short_digest(rows.tobytes())}.npy"
    kept = _open(path, size)
    if kept is None or not np.array_equal(kept[1], rows):
        _write(path, rows, images, size, read)
        kept = _open(path, size)
        if kept is None:
            raise DataError(f"cache-dir: {path} was damaged while it was written")
    return kept[0]


def _open(path: Path, size: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]] | None:
    """Map a file's pixels and read its rows, which stand last; None unless it is sound."""
    try:
        pixels = npy.open_memmap(path, mode="r")
        with path.open("rb") as file:
            file.seek(pixels.offset + pixels.nbytes)
            rows = npy.read_array(file, allow_pickle=False)
    except (OSError, EOFError, ValueError):
        return None
    sound = pixels.dtype == np.uint8 and pixels.shape == (*rows.shape, size, size, 3)
    return (pixels, rows) if sound else None


def _write(
    path: Path, rows: NDArray[np.int64], images: NDArray[np.str_], size: int, read: ReadPixels
) -> None:
    decoded = _Decoded(path, rows, size)
    failures: list[str] = []

    def read_or_note(image: str) -> NDArray[np.uint8]:
        try:
            return read(image, size)
        except (OSError, SyntaxError, ValueError) as error:  # what Pillow raises on broken files
            failures.append(f"{image} ({error})")
            return np.zeros((size, size, 3), np.uint8)

    with _whole_file(path) as file, ThreadPoolExecutor(THREADS) as pool:
        header = {"descr": "|u1", "fortran_order": False, "shape": (len(rows), size, size, 3)}
        npy.write_array_header_1_0(file, header)
        for start in range(0, len(rows), CHUNK):
            chunk = slice(start, start + CHUNK)
            pixels, lacking = decoded.take(chunk)
            for place, square in zip(
                lacking, pool.map(read_or_note, images[chunk][lacking].tolist()), strict=True
            ):
                pixels[place] = square
            file.write(pixels.tobytes())
        if failures:
            raise DataError(
                f"{len(failures)} of {len(rows)} images cannot be decoded: {some(sorted(failures))}"
            )
        npy.write_array(file, rows, allow_pickle=False)


class _Decoded:
    """Pixels that other files of the folder hold already: the same images, divided otherwise."""

    def __init__(self, path: Path, rows: NDArray[np.int64], size: int) -> None:
        self._size = size
        self._files: list[NDArray[np.uint8]] = []
        self._file = np.full(len(rows), -1)
        self._place = np.zeros(len(rows), np.int64)
        for other in sorted(path.parent.glob("*.npy")):
            kept = _open(other, size)
            if kept is None:
                continue
            place = np.searchsorted(kept[1], rows).clip(max=len(kept[1]) - 1)
            found = (kept[1][place] == rows) & (self._file < 0)
            if found.any():
                self._file[found] = len(self._files)
                self._place[found] = place[found]
                self._files.append(kept[0])

    def take(self, chunk: slice) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return the pixels of a chunk, and the places in it that are still to be decoded."""
        file, place = self._file[chunk], self._place[chunk]
        pixels = np.zeros((len(file), self._size, self._size, 3), np.uint8)
        for number in np.unique(file[file >= 0]):
            pixels[file == number] = self._files[number][place[file == number]]
        return pixels, np.flatnonzero(file < 0)


@contextmanager
def _whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file that appears under its name only when it is complete and on the disk."""
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        number, name = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".tmp", dir=path.parent)
        temporary = Path(name)
        with os.fdopen(number, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise DataError(f"cache-dir: cannot write {path}: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
