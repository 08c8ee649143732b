# SPDX-License-Identifier: Apache-2.0
"""Locking: conjugate the blocks of a model file with the owner's column key.

Paper, authorization: with the key the locked model is the model; without it, it is of little use.
What this protects and what it does not: `docs/model-locking.md`. Values only change places, so any
dtype is exact and unlocking restores the file bit for bit. Files are streamed: memory holds a few
copies of the largest tensor of a block.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from torch import Tensor

from equivariance.column import Inner
from equivariance.keys import Secret
from equivariance.locking.architectures import (
    Stack,
    block_names,
    check_not_rotary,
    detect_architecture,
    stream_features,
)
from equivariance.locking.errors import LockError
from equivariance.locking.record import (
    LOCK_KEY,
    Lock,
    column_order,
    locked_header,
    plain_header,
)
from equivariance.locking.surroundings import check_told_not_rotary, find_heads
from equivariance.locking.tensor_file import TensorFile, check_target, new_file, with_length
from equivariance.order import compose, invert

__all__ = ["lock_file", "read_lock", "rekey_file", "unlock_file", "write_conjugated"]

StrPath = str | PathLike[str]


def read_lock(path: StrPath) -> Lock:
    """Return what a locked file says about itself.

    Raises
    ------
    LockError
        If it is no complete safetensors file or is not locked.
    """
    return Lock.of(TensorFile.open(path))


def lock_file(
    source: StrPath,
    target: StrPath,
    secret: Secret,
    *,
    architecture: str | None = None,
    heads: int | None = None,
    inner: Inner = "headwise",
    force: bool = False,
) -> Lock:
    """Write a locked copy of a model file.

    Parameters
    ----------
    source, target : path
        Safetensors files. `target` appears complete or not at all.
    secret : Secret
        The model owner's; use it for no other model.
    architecture : str, optional
        A key of `equivariance.RULES`. By default found from the names of all parameters; if it is
        given, names outside the blocks do not matter.
    heads : int, optional
        Attention heads; by default found as `find_heads` says. Not needed for `inner="none"`.
    inner : {"headwise", "none"}
        As for `conjugate_state`. `none` has the larger group and also covers models that normalise
        queries and keys.
    force : bool
        Replace `target` if it exists; it may be `source` itself.

    Returns
    -------
    Lock
        What the file says about itself.

    Raises
    ------
    LockError
        If `source` is incomplete, locked already, of an unknown architecture or with parameters
        that cannot be conjugated, `heads` is missing, wrong or not what the file's surroundings
        tell, positions are rotary (as far as names, metadata or a `config.json` beside the file
        tell) and `inner` is `headwise`, or `target` exists or is no regular file.
    """
    file = TensorFile.open(source)
    if LOCK_KEY in file.metadata:
        raise LockError(f"{file.path}: is locked already; to change the key use rekey")
    with _about(file):
        stack = _stack(file, architecture=architecture, heads=heads, inner=inner)
    order = column_order(stack, secret)
    lock = Lock.made(stack, secret)
    write_conjugated(file, target, stack, order, locked_header(file, lock), force=force)
    return lock


def unlock_file(
    source: StrPath,
    target: StrPath,
    secret: Secret,
    *,
    heads: int | None = None,
    force: bool = False,
) -> Lock:
    """Write the plain copy of a locked file: the very file that was locked, bit for bit.

    Only its owner may read it, whatever the permissions of the locked one.

    A locked file that another program wrote anew gives the same tensors under a new header.

    Parameters
    ----------
    source, target, secret, force
        As for `lock_file`.
    heads : int, optional
        For how many heads the key is thought to be; must agree with the file.

    Raises
    ------
    LockError
        If `source` is incomplete, not locked, or locked with another key or for other heads, or
        `target` exists.
    """
    file, lock = _open_locked(source, heads)
    order = invert(lock.order(secret, source=str(file.path)))
    write_conjugated(file, target, lock, order, plain_header(file), force=force, private=True)
    return lock


def rekey_file(
    source: StrPath,
    target: StrPath,
    secret: Secret,
    new_secret: Secret,
    *,
    heads: int | None = None,
    force: bool = False,
) -> Lock:
    """Write a copy locked with a new secret, by one conjugation with the ratio of both keys.

    The result equals unlocking and locking anew, bit for bit; the plain model appears nowhere.
    Parameters and errors are those of `unlock_file`.
    """
    file, old = _open_locked(source, heads)
    new = Lock.made(old, new_secret)
    ratio = compose(invert(old.order(secret, source=str(file.path))), column_order(new, new_secret))
    plain = TensorFile(file.path, plain_header(file))
    write_conjugated(file, target, old, ratio, locked_header(plain, new), force=force)
    return new


def write_conjugated(
    file: TensorFile,
    target: StrPath,
    stack: Stack,
    order: Tensor,
    header: bytes,
    *,
    force: bool = False,
    private: bool = False,
) -> None:
    """Write a copy of a file with its blocks conjugated, under another header.

    Parameters
    ----------
    file : TensorFile
        The source.
    target : path
        Appears complete or not at all.
    stack : Stack
        What the blocks are.
    order : Tensor
        Column permutation [dim].
    header : bytes
        Of the new file; its tensors are those of `file`, in the same places.
    force : bool
        Replace `target` if it exists.
    private : bool
        It holds plain weights: for the owner's eyes only, whatever the source's permissions.

    Raises
    ------
    LockError
        As `lock_file`.
    """
    target = Path(target)
    shapes = file.shapes
    with _about(file):
        inside = set(block_names(shapes, stack.architecture))
        stack.check_shapes({name: shapes[name] for name in inside}, order)
    check_target(target, force=force)
    with (
        file.path.open("rb") as source,
        new_file(target, like=file.path, force=force, private=private) as out,
    ):
        out.write(with_length(header))
        for entry in file.entries:
            if entry.name in inside:
                tensor = file.read(entry, source)
                out.write(stack.conjugate({entry.name: tensor}, order)[entry.name].numpy().data)
            else:
                out.writelines(file.chunks(entry, source))


def _open_locked(source: StrPath, heads: int | None) -> tuple[TensorFile, Lock]:
    file = TensorFile.open(source)
    lock = Lock.of(file)
    if heads is not None and heads != lock.heads:
        raise LockError(f"{file.path}: is locked for {lock.heads} heads, not {heads}")
    return file, lock


def _stack(file: TensorFile, *, architecture: str | None, heads: int | None, inner: Inner) -> Stack:
    shapes = file.shapes
    architecture = architecture or detect_architecture(shapes)
    inside: Mapping[str, tuple[int, ...]] = {
        name: shapes[name] for name in block_names(shapes, architecture)
    }
    dim = stream_features(inside, architecture)
    if inner == "headwise":
        check_not_rotary(shapes, inner)
        check_told_not_rotary(file)
        heads = find_heads(file, dim, heads)
    heads = 1 if heads is None else heads
    if heads < 1 or dim % heads:
        raise LockError(f"heads {heads}: must divide the {dim} features")
    return Stack(architecture=architecture, dim=dim, heads=heads, inner=inner)


@contextmanager
def _about(file: TensorFile) -> Iterator[None]:
    """Put the file's name before an error about its names, shapes or surroundings."""
    try:
        yield
    except LockError as error:
        raise LockError(f"{file.path}: {error}") from error
