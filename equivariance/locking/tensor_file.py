# SPDX-License-Identifier: Apache-2.0
"""Safetensors files as they lie on disk: read and written tensor by tensor, byte for byte.

The safetensors library writes a file only from tensors that are all in memory, and sorts them. Here
one tensor is in memory at a time, and the order of tensors and the header's exact text are kept, so
that a locked file can become the original again. Layout: 8 bytes with the header's length
(little-endian), the header (JSON), the tensors' bytes without gaps.
"""

import json
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from math import prod
from pathlib import Path
from typing import BinaryIO, Self

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from equivariance.locking.errors import LockError

__all__ = ["TensorEntry", "TensorFile", "check_target", "header_text", "new_file", "with_length"]

_LENGTH_BYTES = 8
_ALIGNMENT = 8
_CHUNK_BYTES = 1 << 22
# Permuting moves whole entries, whatever they mean: integers of the same width stand for all types.
_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """Where one tensor lies.

    Parameters
    ----------
    name, dtype : str
        As in the header, e.g. `"blocks.0.norm1.weight"`, `"BF16"`.
    shape : tuple of int
        Its shape.
    begin, end : int
        Bytes, counted from the end of the header.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class TensorFile:
    """A complete safetensors file; only its header is in memory.

    Parameters
    ----------
    path : Path
        Where it is.
    header : bytes
        The header exactly as it is written, padding included.
    """

    path: Path
    header: bytes

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Read the header, and check with the safetensors library that the file is complete.

        Raises
        ------
        LockError
            If the file cannot be read, is cut off, or is no safetensors file.
        """
        path = Path(path)
        try:
            if not stat.S_ISREG(path.stat().st_mode):  # to open a pipe would wait for ever
                raise LockError(f"{path}: not a regular file")
            with path.open("rb") as file:
                length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
                with safe_open(path, framework="pt"):
                    return cls(path, file.read(length))
        except OSError as error:
            raise LockError(f"{path}: cannot be read: {error.strerror or error}") from error
        except SafetensorError as error:
            raise LockError(f"{path}: not a complete safetensors file: {error}") from error

    @property
    def metadata(self) -> dict[str, str]:
        """Texts that ride along with the tensors."""
        return dict(json.loads(self.header).get("__metadata__", {}))

    @property
    def entries(self) -> list[TensorEntry]:
        """All tensors, in the order of their bytes."""
        header = json.loads(self.header)
        header.pop("__metadata__", None)
        entries = [
            TensorEntry(name, one["dtype"], tuple(one["shape"]), *one["data_offsets"])
            for name, one in header.items()
        ]
        return sorted(entries, key=lambda entry: (entry.begin, entry.end))

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each tensor."""
        return {entry.name: entry.shape for entry in self.entries}

    def read(self, entry: TensorEntry, file: BufferedReader) -> Tensor:
        """Read one tensor as integers of its entries' width.

        Parameters
        ----------
        entry : TensorEntry
            Which.
        file : BufferedReader
            This file, open.

        Raises
        ------
        LockError
            If entries are not 1, 2, 4 or 8 bytes wide, or the file has become shorter.
        """
        size, count = entry.end - entry.begin, prod(entry.shape)
        width = size // count if count else 1
        if width not in _WORDS or width * count != size:
            raise LockError(f"{self.path}: {entry.name} is {entry.dtype}: cannot be permuted")
        content = bytearray(size)
        file.seek(_LENGTH_BYTES + len(self.header) + entry.begin)
        if file.readinto(content) != size:
            raise LockError(f"{self.path}: became shorter while it was read")
        words = torch.frombuffer(content, dtype=_WORDS[width]) if count else torch.empty(0)
        return words.reshape(entry.shape)

    def chunks(self, entry: TensorEntry, file: BufferedReader) -> Iterator[bytes]:
        """Yield one tensor's bytes in pieces of a few MiB; parameters as for `read`."""
        file.seek(_LENGTH_BYTES + len(self.header) + entry.begin)
        left = entry.end - entry.begin
        while left:
            chunk = file.read(min(left, _CHUNK_BYTES))
            if not chunk:
                raise LockError(f"{self.path}: became shorter while it was read")
            left -= len(chunk)
            yield chunk


def header_text(source: TensorFile, metadata: Mapping[str, str]) -> bytes:
    """Write a header with a file's tensors and other metadata, padded to the usual 8 bytes."""
    header = json.loads(source.header)
    header.pop("__metadata__", None)
    whole = ({"__metadata__": dict(metadata)} if metadata else {}) | header
    text = json.dumps(whole, separators=(",", ":"), ensure_ascii=False).encode()
    return text + b" " * (-len(text) % _ALIGNMENT)


def with_length(header: bytes) -> bytes:
    """Return how a file with this header begins."""
    return len(header).to_bytes(_LENGTH_BYTES, "little") + header


def check_target(path: Path, *, force: bool) -> None:
    """Check that a file can be written; with `force` also one that is there, if it is a file.

    Raises
    ------
    LockError
        If something is there and `force` is false, or it is a folder, device or pipe.
    """
    if path.exists() and not force:
        raise LockError(f"{path}: exists; choose another output or --force")
    if path.exists() and not path.is_file():
        raise LockError(f"{path}: is no regular file; choose another output")


@contextmanager
def new_file(path: Path, *, like: Path, force: bool, private: bool = False) -> Iterator[BinaryIO]:
    """Write a file that appears complete or not at all.

    It grows under another name in the same folder and takes its place at the end of the block; if
    the block raises, nothing is left of it. A symbolic link stays, and its target is written.

    Parameters
    ----------
    path : Path
        Where it appears.
    like : Path
        Whose file permissions it takes.
    force : bool
        Whether it may replace a file.
    private : bool
        Take away the permissions of all but the owner.

    Raises
    ------
    LockError
        As `check_target`, or if the folder cannot be written.
    """
    check_target(path, force=force)
    path = path.resolve()
    allowed = stat.S_IRUSR | stat.S_IWUSR if private else 0o777
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        temporary = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fchmod(descriptor, like.stat().st_mode & allowed)
                os.fsync(descriptor)
            _publish(temporary, path, force)
        finally:
            temporary.unlink(missing_ok=True)
    except FileExistsError as error:
        raise LockError(f"{path}: exists; choose another output or --force") from error
    except OSError as error:
        raise LockError(f"{path}: cannot be written: {error.strerror or error}") from error


def _publish(temporary: Path, path: Path, force: bool) -> None:
    if force:
        temporary.replace(path)
    else:
        path.hardlink_to(temporary)  # unlike a rename it fails where a file exists
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
