# SPDX-License-Identifier: Apache-2.0
"""What ``lock``, ``unlock``, ``rekey`` and ``crack`` share."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console

Key = Annotated[
    Path, typer.Option("--key", help="Key file of the model's owner, mode 0600.", metavar="FILE")
]
Out = Annotated[
    Path | None,
    typer.Option("--out", help="File to write; default: beside MODEL.", metavar="FILE"),
]
Force = Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")]
ExpectedHeads = Annotated[
    int | None,
    typer.Option("--heads", min=1, help="Refuse a file that is locked for other heads."),
]


def beside(model: Path, what: str) -> Path:
    """Return the default output, e.g. ``vit.safetensors`` locked is ``vit.locked.safetensors``."""
    stem = model.name.removesuffix(model.suffix)
    for earlier in (".locked", ".unlocked", ".rekeyed"):
        stem = stem.removesuffix(earlier)
    return model.with_name(f"{stem}.{what}{model.suffix}")


@contextmanager
def refusals() -> Iterator[None]:
    """Turn what the library refuses into its message and exit code 2.

    A request to end (SIGTERM, SIGHUP) unwinds, so that no half-written file stays.
    """
    from equivariance import KeyFileError
    from equivariance.locking import LockError

    try:
        with _unwinding():
            yield
    except (LockError, KeyFileError) as error:
        Console(stderr=True).print(
            f"{error}", style="red", markup=False, highlight=False, soft_wrap=True
        )
        raise typer.Exit(2) from error


@contextmanager
def _unwinding() -> Iterator[None]:
    """Let signals that end a process raise SystemExit, 128 and their number, in the main thread.

    One that is ignored stays so, as ``nohup`` has it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    before = {number: old for number, old in before.items() if old is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
