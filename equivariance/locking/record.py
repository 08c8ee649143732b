# SPDX-License-Identifier: Apache-2.0
"""What a locked file says about itself, in the metadata of its header.

It says that it is locked, for which stack of blocks, and a check value of the key: a pseudo-random
function of the 256-bit secret, under a purpose of its own. It refuses a wrong key and tells nothing
about the permutation; it does show whether two files of one kind are locked with one key.
"""

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from hmac import compare_digest
from typing import get_args

from torch import Tensor

from equivariance.column import Inner, sample_column_order
from equivariance.keys import Secret
from equivariance.locking.architectures import Stack
from equivariance.locking.errors import LockError
from equivariance.locking.tensor_file import TensorFile, header_text

__all__ = ["FORMAT", "HEADER_KEY", "LOCK_KEY", "Lock", "locked_header", "plain_header"]

FORMAT = 1
LOCK_KEY = "permsplit.lock"
HEADER_KEY = "permsplit.header"
_MAX_HEADER_BYTES = 100_000_000  # the safetensors library's own limit


@dataclass(frozen=True, kw_only=True)
class Lock(Stack):
    """The stack that is locked, and the check value of the key.

    Parameters
    ----------
    check : str
        64 hexadecimal digits; see `Lock.made`.
    """

    check: str

    @classmethod
    def made(cls, stack: Stack, secret: Secret) -> "Lock":
        """Return the record for a stack that is locked with a secret."""
        return cls(
            architecture=stack.architecture,
            dim=stack.dim,
            heads=stack.heads,
            inner=stack.inner,
            check=_check_value(stack, secret),
        )

    @classmethod
    def of(cls, file: TensorFile) -> "Lock":
        """Read the record of a file; LockError if it is not locked or in another format."""
        text = file.metadata.get(LOCK_KEY)
        if text is None:
            raise LockError(f"{file.path}: is not locked")
        return cls.parse(text, source=str(file.path))

    @classmethod
    def parse(cls, text: str, *, source: str = "lock record") -> "Lock":
        """Read what `text` wrote; errors begin with `source`."""
        try:
            record = json.loads(text)
            version = record.pop("format")
            if version != FORMAT:
                raise LockError(f"{source}: lock format {version}; known is {FORMAT}")
            lock = cls(**record)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            if isinstance(error, LockError):
                raise
            raise LockError(f"{source}: its lock record cannot be understood") from error
        numbers = all(type(value) is int and value > 0 for value in (lock.dim, lock.heads))
        numbers = numbers and lock.dim % lock.heads == 0
        texts = all(isinstance(value, str) for value in (lock.architecture, lock.check))
        if not (numbers and texts and lock.inner in get_args(Inner)):
            raise LockError(f"{source}: its lock record cannot be understood")
        return lock

    @property
    def text(self) -> str:
        """The record as it stands in the metadata, JSON."""
        return json.dumps(
            {
                "format": FORMAT,
                "architecture": self.architecture,
                "dim": self.dim,
                "heads": self.heads,
                "inner": self.inner,
                "check": self.check,
            }
        )

    def order(self, secret: Secret, *, source: str = "the model") -> Tensor:
        """Return the column permutation [dim] of a secret, after checking that it is the right one.

        Raises
        ------
        LockError
            If the stack is locked with another secret.
        """
        if not compare_digest(self.check.encode(), _check_value(self, secret).encode()):
            raise LockError(f"{source}: is locked with another key")
        return column_order(self, secret)


def column_order(stack: Stack, secret: Secret) -> Tensor:
    """Return a secret's column permutation for a stack, [dim], int64."""
    heads = stack.heads if stack.inner == "headwise" else 1
    return sample_column_order(secret, dim=stack.dim, heads=heads)


def locked_header(file: TensorFile, lock: Lock, *, original: bytes | None = None) -> bytes:
    """Write the header of a locked file, which keeps the original header's exact text.

    Parameters
    ----------
    file : TensorFile
        Its tensors and other metadata are kept.
    lock : Lock
        The record.
    original : bytes, optional
        The header of the plain file; by default that of `file`.
    """
    packed = base64.b64encode(zlib.compress(original or file.header, 9)).decode()
    return header_text(file, file.metadata | {LOCK_KEY: lock.text, HEADER_KEY: packed})


def plain_header(file: TensorFile) -> bytes:
    """Return the header of the plain file.

    It is the original text if the locked file still says the same. If some other program has
    written the locked file anew, e.g. after fine-tuning, it is the file's own without the record.
    """
    metadata = {k: v for k, v in file.metadata.items() if k not in (LOCK_KEY, HEADER_KEY)}
    current = header_text(file, metadata)
    original = _unpack(file.metadata.get(HEADER_KEY, ""))
    return original if _meaning(original) == _meaning(current) else current


def _unpack(packed: str) -> bytes:
    try:
        stream = zlib.decompressobj()
        text = stream.decompress(base64.b64decode(packed, validate=True), _MAX_HEADER_BYTES)
    except (ValueError, zlib.error):
        return b""
    return text if stream.eof else b""


def _meaning(header: bytes) -> Mapping[str, object] | None:
    try:
        parsed = json.loads(header)
    except (ValueError, RecursionError):
        return None
    if not isinstance(parsed, dict) or not isinstance(parsed.get("__metadata__", {}), dict):
        return None
    metadata = dict(parsed.get("__metadata__", {}))
    metadata.pop(HEADER_KEY, None)  # a plain file may have had one of that name
    return parsed | {"__metadata__": metadata}


def _check_value(stack: Stack, secret: Secret) -> str:
    purpose = (stack.architecture, stack.dim, stack.heads, stack.inner)
    return secret.derive("lock-check", FORMAT, *purpose).hex()
