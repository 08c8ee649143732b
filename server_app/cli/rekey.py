# SPDX-License-Identifier: Apache-2.0
"""``permsplit rekey``: a locked model under a new key."""

from pathlib import Path
from typing import Annotated

import typer

from server_app.cli.model_files import ExpectedHeads, Force, Key, Out, beside, refusals


def rekey(
    model: Annotated[Path, typer.Argument(metavar="LOCKED.safetensors")],
    key: Key,
    new_key: Annotated[
        Path, typer.Option("--new-key", help="Key file, mode 0600.", metavar="FILE")
    ],
    out: Out = None,
    heads: ExpectedHeads = None,
    force: Force = False,
) -> None:
    """Change the key of a locked model, without training and without its plain weights."""
    with refusals():
        from equivariance import Secret
        from equivariance.locking import rekey_file

        target = out or beside(model, "rekeyed")
        old, new = Secret.from_file(key), Secret.from_file(new_key)
        rekey_file(model, target, old, new, heads=heads, force=force)
    typer.echo(str(target))
