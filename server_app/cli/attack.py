# SPDX-License-Identifier: Apache-2.0
"""``permsplit attack``: let attackers at a finished run."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import click
import typer
from rich.console import Console

from server_app.cli import options
from server_app.cli.values import absolute_face


def attack(
    run: Annotated[Path, typer.Argument(help="Folder of a run.", metavar="RUN")],
    attacker: Annotated[
        list[str],
        typer.Option(
            "--attacker",
            help="decoder, position, analytic, jigsaw, optimise, attributes; or a comma list.",
            metavar="NAME",
        ),
    ],
    images: Annotated[
        int | None,
        typer.Option("--images", min=1, help="Victims at most (default: attack-images)."),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option("--epochs", min=0, help="Of attackers that learn; 0: their own."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, help="Of the attackers (default: the run's seed)."),
    ] = None,
    client: Annotated[
        int | None, typer.Option("--client", min=-1, help="The victims' client; -1: all.")
    ] = None,
    face: Annotated[
        str | None,
        typer.Option(
            "--face",
            help="Network of F-SIM: an ONNX file or timm:NAME (default: attack-face).",
            metavar="NET",
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics",
            help="Comma list of scores of images (default: attack-metrics).",
            metavar="NAMES",
        ),
    ] = None,
    gpus: Annotated[
        float | None,
        typer.Option("--gpus", min=0, help="GPUs of an attacker (default: trunk-gpus)."),
    ] = None,
    ray_address: options.RayAddress = None,
) -> None:
    """Attack what a finished run's clients sent; results go into the run's folder.

    Options that are not given come from the run's configuration.
    """
    from dataclasses import replace

    import pandas as pd

    from attacks import AttackError, attackers_of, check_attack
    from attacks.metrics import metrics_of
    from config import ConfigError, parse_run_config
    from reports import RunFolder, RunFolderError
    from reports.attack_text import rows_as_text
    from reports.console import print_table
    from reports.report import write_report
    from server_app.attack import AttackFailed, attack_run, options_of
    from server_app.cli.attack_bars import AttackBars
    from server_app.cli.local_ray import started
    from server_app.cli.ray_address import check_ray_address

    with _named("--attacker"):
        names = attackers_of(",".join(attacker))
        if not names:
            raise AttackError("name one at least")
    with _named("--metrics"):
        metrics_of("ssim" if metrics is None else metrics)
    try:
        folder = RunFolder.open(run)
        config = parse_run_config(folder.config())
        given = {"images": images, "epochs": epochs, "seed": seed, "client": client,
                 "face": absolute_face(face, Path.cwd()) if face else None,
                 "metrics": metrics}  # fmt: skip
        chosen = {key: value for key, value in given.items() if value is not None}
        asked = replace(options_of(config), **chosen)  # type: ignore[arg-type]
        check_attack(folder, names, asked)
        for table in (folder.metrics, folder.ledger, folder.attacks):
            table()  # the report at the end needs them
    except (AttackError, RunFolderError, ConfigError) as error:
        raise click.ClickException(str(error)) from error
    check_ray_address(ray_address)
    gpus = config.trunk_gpus if gpus is None else gpus
    try:
        with started(ray_address), AttackBars() as bars:
            rows = attack_run(folder, names, asked, gpus=gpus, watch=bars.watch)
    except (AttackError, AttackFailed) as error:
        raise click.ClickException(str(error)) from error
    report = write_report(folder)
    print_table(Console(), rows_as_text(pd.DataFrame(rows)), title="What came back")
    typer.echo(f"report: {report}")


@contextmanager
def _named(option: str) -> Iterator[None]:
    """Says which option is wrong."""
    from attacks import AttackError

    try:
        yield
    except AttackError as error:
        raise typer.BadParameter(str(error), param_hint=option) from error
