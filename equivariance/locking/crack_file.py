# SPDX-License-Identifier: Apache-2.0
"""The attack on files, and what it writes."""

from os import PathLike
from pathlib import Path

from safetensors.torch import load_file, save

from equivariance.locking.crack import Crack, crack
from equivariance.locking.errors import LockError
from equivariance.locking.lock import write_conjugated
from equivariance.locking.record import LOCK_KEY, Lock, plain_header
from equivariance.locking.tensor_file import TensorFile, check_target, new_file
from equivariance.order import invert

__all__ = ["crack_file"]

StrPath = str | PathLike[str]


def crack_file(
    locked: StrPath,
    reference: StrPath,
    *,
    unlocked: StrPath | None = None,
    order: StrPath | None = None,
    force: bool = False,
) -> Crack:
    """Attack a locked file with a plain file of a related model.

    Parameters
    ----------
    locked, reference : path
        Safetensors files; both are read into memory.
    unlocked : path, optional
        Write here the model unlocked with the permutation that was found. If it was found in full,
        this is the original file, bit for bit. Not written if nothing was found: see
        `Crack.related`.
    order : path, optional
        Likewise the permutation that was found: safetensors, one tensor `order`.
    force : bool
        Replace files that exist.

    Raises
    ------
    LockError
        If `locked` is not locked, `reference` is, one is incomplete, they do not fit, or an output
        exists.
    """
    file, plain = TensorFile.open(locked), TensorFile.open(reference)
    lock = Lock.of(file)
    if LOCK_KEY in plain.metadata:
        raise LockError(f"{plain.path}: is locked itself; the reference must be a plain model")
    for path in (unlocked, order):
        if path is not None:
            check_target(Path(path), force=force)
    try:
        found = crack(load_file(file.path), load_file(plain.path), lock)
    except LockError as error:
        raise LockError(f"{file.path} against {plain.path}: {error}") from error
    if not found.related:
        return found
    if unlocked is not None:
        header, back = plain_header(file), invert(found.order)
        write_conjugated(file, unlocked, lock, back, header, force=force, private=True)
    if order is not None:
        with new_file(Path(order), like=file.path, force=force, private=True) as out:
            out.write(save({"order": found.order}))
    return found
