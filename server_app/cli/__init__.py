# SPDX-License-Identifier: Apache-2.0
"""The command line ``permsplit``: one command per file, all listed in ``registry.py``."""

from typing import Any

import click
import typer
from rich.console import Console
from typer.core import TyperGroup

from config import ConfigError
from server_app.cli.registry import COMMANDS

__all__ = ["app", "main"]


class _Commands(TyperGroup):
    """All commands; an error in what was asked is a message, never a traceback.

    Exit code 2 is for configurations, 1 for the rest. Messages are not cut to the terminal's
    width, as long paths would be in typer's frame.
    """

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            if type(error) is not click.ClickException:
                raise
            Console(stderr=True).print(
                error.message, style="red", markup=False, highlight=False, soft_wrap=True
            )
            raise typer.Exit(error.exit_code) from error
        except ConfigError as error:
            Console(stderr=True).print(
                f"{error}", style="red", markup=False, highlight=False, soft_wrap=True
            )
            raise typer.Exit(2) from error


app = typer.Typer(
    name="permsplit",
    help="Split learning of Transformers whose tokens are permuted with private keys.",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for _name, _command in COMMANDS.items():
    app.command(_name)(_command)


def main() -> None:
    """Entry point of the script ``permsplit``."""
    app(prog_name="permsplit")
