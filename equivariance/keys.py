# SPDX-License-Identifier: Apache-2.0
"""Secrets of 256 bits: where they come from, how others derive from them, how they are stored."""

import os
import re
import secrets
import stat
import tempfile
from dataclasses import dataclass
from operator import index
from pathlib import Path
from typing import NoReturn, Self

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand

__all__ = ["KEY_BYTES", "KeyFileError", "Secret"]

KEY_BYTES = 32
_HEX_DIGITS = re.compile(rf"[0-9a-fA-F]{{{2 * KEY_BYTES}}}")


class KeyFileError(ValueError):
    """A key file cannot be used. The message names the path, the fault and what is allowed."""


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A 256-bit key.

    Its bytes show neither in `repr` nor in `str`, and it refuses to be pickled, so it cannot slip
    into a message or a checkpoint; `hex` and `write` are the two deliberate ways out.

    Parameters
    ----------
    raw : bytes
        32 bytes, uniformly random.

    Raises
    ------
    ValueError
        If there are not 32 bytes.
    """

    raw: bytes

    def __post_init__(self) -> None:
        if len(self.raw) != KEY_BYTES:
            raise ValueError(f"a secret has {KEY_BYTES} bytes; got {len(self.raw)}")

    @classmethod
    def random(cls) -> Self:
        """Return a fresh secret from the operating system's generator."""
        return cls(secrets.token_bytes(KEY_BYTES))

    @classmethod
    def from_hex(cls, text: str) -> Self:
        """Read 64 hexadecimal digits; anything else is a ValueError that does not quote them."""
        if not _HEX_DIGITS.fullmatch(text):
            raise ValueError(
                f"a secret is {2 * KEY_BYTES} hexadecimal digits; "
                f"got {len(text)} characters that are not that"
            )
        return cls(bytes.fromhex(text))

    @classmethod
    def from_seed(cls, seed: int, *names: int | str) -> Self:
        """Return the reproducible secret of a simulation.

        Whoever knows or guesses the seed has the secret: this is no secrecy at all.

        Parameters
        ----------
        seed : int
            Any integer.
        *names : int or str
            Whose it is, e.g. `"client", 3`. Other names give unrelated secrets.
        """
        hkdf = HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=b"permsplit/seed/1", info=b"")
        return cls(hkdf.derive(_encode(seed, *names)))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """Read a secret that `write` wrote.

        Parameters
        ----------
        path : path-like
            A file with 64 hexadecimal digits and at most a line end, readable by its owner only
            (mode 0600 or stricter; POSIX).

        Raises
        ------
        KeyFileError
            If it cannot be read, others may access it, or it holds something else.
        """
        try:
            with Path(path).open("rb") as file:
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                content = file.read(2 * KEY_BYTES + 3)
        except OSError as error:
            raise KeyFileError(f"key file {path}: cannot be read: {error.strerror}") from error
        if mode & ~(stat.S_IRUSR | stat.S_IWUSR):
            raise KeyFileError(
                f"key file {path}: mode is {mode:04o}; allowed is 0600 or stricter (chmod 600)"
            )
        text = re.sub(r"\r?\n\Z", "", content.decode("latin-1"))
        if not _HEX_DIGITS.fullmatch(text):
            raise KeyFileError(
                f"key file {path}: content is not a key; "
                f"allowed are {2 * KEY_BYTES} hexadecimal digits and a line end"
            )
        return cls(bytes.fromhex(text))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Store the secret in a new file of mode 0600.

        The file appears complete or not at all, and never replaces another: it is written beside
        its place and then hard-linked there, which fails where a file exists.

        Parameters
        ----------
        path : path-like
            Where; its folder exists and supports hard links.

        Raises
        ------
        KeyFileError
            If something is there already, or the folder cannot be written.
        """
        try:
            _write_new(Path(path), f"{self.hex()}\n".encode())
        except FileExistsError as error:
            raise KeyFileError(
                f"key file {path}: exists; a key is never overwritten, choose a new path"
            ) from error
        except OSError as error:
            raise KeyFileError(f"key file {path}: cannot be written: {error.strerror}") from error

    def derive(self, *purpose: int | str) -> "Secret":
        """Derive the secret for one purpose, by HKDF-Expand with SHA-256 (RFC 5869).

        Parameters
        ----------
        *purpose : int or str
            What it is for, e.g. `"rows", "train", 3, 17`. The parts are encoded with type and
            length, so `1` and `"1"`, or `"ab", "c"` and `"a", "bc"`, are different purposes.

        Returns
        -------
        Secret
            Tells nothing about this secret or those of other purposes.
        """
        info = b"permsplit/key/1" + _encode(*purpose)
        return Secret(HKDFExpand(algorithm=SHA256(), length=KEY_BYTES, info=info).derive(self.raw))

    def hex(self) -> str:
        """Return the secret as 64 hexadecimal digits, in the clear."""
        return self.raw.hex()

    def __repr__(self) -> str:
        return "Secret(hidden)"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a Secret is not pickled, lest it leave its owner; hex() is explicit")


def _encode(*parts: int | str) -> bytes:
    """Encode parts one to one: type (1 byte), length (4 bytes, little-endian), UTF-8 text."""
    encoded = b""
    for part in parts:
        kind = b"s" if isinstance(part, str) else b"i"
        text = (part if isinstance(part, str) else str(index(part))).encode()
        encoded += kind + len(text).to_bytes(4, "little") + text
    return encoded


def _write_new(path: Path, content: bytes) -> None:
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # mode 0600
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        path.hardlink_to(temporary)
    finally:
        temporary.unlink()
