# SPDX-License-Identifier: Apache-2.0
"""``permsplit unlock``: the plain file of a locked model."""

from pathlib import Path
from typing import Annotated

import typer

from server_app.cli.model_files import ExpectedHeads, Force, Key, Out, beside, refusals


def unlock(
    model: Annotated[Path, typer.Argument(metavar="LOCKED.safetensors")],
    key: Key,
    out: Out = None,
    heads: ExpectedHeads = None,
    force: Force = False,
) -> None:
    """Unlock a model: the file that was locked, bit for bit."""
    with refusals():
        from equivariance import Secret
        from equivariance.locking import unlock_file

        target = out or beside(model, "unlocked")
        unlock_file(model, target, Secret.from_file(key), heads=heads, force=force)
    typer.echo(str(target))
