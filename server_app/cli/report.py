# SPDX-License-Identifier: Apache-2.0
"""``permsplit report``: tables and figures of one run, or a comparison of several."""

from pathlib import Path
from typing import Annotated, Literal

import click
import typer


def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs.", metavar="RUN...")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder to write tables or the comparison to.")
    ] = None,
    format: Annotated[
        Literal["md", "csv", "parquet", "latex"], typer.Option("--format", help="Of the tables.")
    ] = "md",
) -> None:
    """Report on one run, or compare several."""
    from reports.cli import report_command
    from reports.errors import RunFolderError

    try:
        report_command(runs, out, format)
    except RunFolderError as error:
        raise click.ClickException(str(error)) from error
