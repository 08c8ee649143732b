# SPDX-License-Identifier: Apache-2.0
"""``permsplit lock``: a model file that works only with its owner's key."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from server_app.cli.model_files import Force, Key, Out, beside, refusals


def lock(
    model: Annotated[Path, typer.Argument(metavar="MODEL.safetensors")],
    key: Key,
    out: Out = None,
    heads: Annotated[
        int | None,
        typer.Option("--heads", min=1, help="Attention heads, if the file does not tell them."),
    ] = None,
    architecture: Annotated[
        str | None, typer.Option("--architecture", help="If names do not tell, e.g. timm-vit.")
    ] = None,
    inner: Annotated[
        Literal["headwise", "none"],
        typer.Option("--inner", help="headwise: the paper's. none: leave attention's inside."),
    ] = "headwise",
    force: Force = False,
) -> None:
    """Lock a model: permute the features of its blocks with a column key.

    It protects a model whose plain weights nobody else has, and no public one: see crack.
    MODEL itself stays as it is. Keep the key: without it nobody can unlock the model.
    """
    with refusals():
        from equivariance import Secret
        from equivariance.locking import lock_file

        target = out or beside(model, "locked")
        secret = Secret.from_file(key)
        done = lock_file(
            model,
            target,
            secret,
            architecture=architecture,
            heads=heads,
            inner=inner,
            force=force,
        )
    heads_text = f"{done.heads} heads, " if done.inner == "headwise" else ""
    typer.echo(f"{target}: {done.architecture}, {done.dim} features, {heads_text}{done.inner}")
