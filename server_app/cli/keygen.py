# SPDX-License-Identifier: Apache-2.0
"""``permsplit keygen``: secrets for ``key-source = "file"``."""

from pathlib import Path
from typing import Annotated

import typer

from config import ConfigError, Problem


def keygen(
    folder: Annotated[Path, typer.Option("--dir", help="Folder of the key files.")],
    clients: Annotated[
        int, typer.Option(min=0, help="Write client-000.key to client-(N-1).key.")
    ] = 0,
    column: Annotated[
        bool, typer.Option("--column", help="Also write column.key, the model owner's.")
    ] = False,
) -> None:
    """Write fresh secrets, one file for each data owner, readable by you only.

    Hand every data owner exactly one client file over a safe channel, then delete it here.
    """
    from equivariance.keys import Secret

    if folder.exists() and not folder.is_dir():
        raise ConfigError([Problem("--dir", str(folder), "is a file; allowed is a folder")])
    names = [f"client-{index:03d}.key" for index in range(clients)]
    names += ["column.key"] if column else []
    if not names:
        raise ConfigError([Problem("--clients", clients, "nothing to write; add --column?")])
    existing = [name for name in names if (folder / name).exists()]
    if existing:
        listed = ", ".join(existing)
        raise ConfigError([Problem("--dir", str(folder), f"{listed}: a key is never overwritten")])
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in names:
        Secret.random().write(folder / name)
        typer.echo(str(folder / name))
