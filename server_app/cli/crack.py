# SPDX-License-Identifier: Apache-2.0
"""``permsplit crack``: find the key of a locked model by comparison with a public one."""

import math
from pathlib import Path
from typing import Annotated

import typer

from server_app.cli.model_files import Force, refusals


def crack(
    locked: Annotated[Path, typer.Argument(metavar="LOCKED.safetensors")],
    reference: Annotated[
        Path,
        typer.Option(
            "--reference",
            help="Plain model that it was made from, or a fine-tuned or noisy copy.",
            metavar="FILE",
        ),
    ],
    key: Annotated[
        Path | None,
        typer.Option("--key", help="The true key: measures what was found.", metavar="FILE"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the unlocked model.", metavar="FILE")
    ] = None,
    order_out: Annotated[
        Path | None,
        typer.Option("--order-out", help="Write the permutation found.", metavar="FILE"),
    ] = None,
    force: Force = False,
) -> None:
    """Attack a locked model: recover its column permutation from a related plain model.

    Exit code 1 if nothing shows that the models are related; then nothing is written.
    """
    with refusals():
        from equivariance import Secret
        from equivariance.locking import crack_file, read_lock, share_recovered

        secret = None if key is None else Secret.from_file(key)
        true_order = None if secret is None else read_lock(locked).order(secret, source=str(locked))
        found = crack_file(locked, reference, unlocked=out, order=order_out, force=force)
    agreement = "nothing" if math.isnan(found.agreement) else f"{found.agreement:.1%}"
    typer.echo(f"parameters compared         {found.compared}")
    typer.echo(f"two halves of them agree on {agreement} of the columns")
    typer.echo(f"distance to the reference   {found.residual:.3f} (0 same, 1.4 unrelated)")
    if true_order is not None:
        typer.echo(f"share of the key recovered  {share_recovered(found.order, true_order):.1%}")
        typer.echo(f"  by nearest column alone   {share_recovered(found.nearest, true_order):.1%}")
    if not found.related:
        typer.echo(
            "not found: the halves agree no more than chance explains; nothing is written", err=True
        )
        raise typer.Exit(1)
    for path in (out, order_out):
        if path is not None:
            typer.echo(str(path))
