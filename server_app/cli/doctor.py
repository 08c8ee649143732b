# SPDX-License-Identifier: Apache-2.0
"""``permsplit doctor``: is everything there for a run?"""

import typer
from rich.console import Console
from rich.text import Text

from server_app.cli import options
from server_app.cli.app_folder import app_folder
from server_app.cli.health.finding import Examination, Finding
from server_app.cli.plan import resolve_config

STYLES = {"OK": "green", "WARN": "yellow", "FAIL": "bold red"}


def doctor(
    preset: options.Preset = None,
    assignments: options.Assignments = None,
    runs_dir: options.RunsDir = None,
    ray_address: options.RayAddress = None,
    app: options.App = None,
) -> None:
    """Check this machine for a run; exit code 1 if something would make it fail."""
    from server_app.cli.health import examine

    overrides = {"runs-dir": str(runs_dir)} if runs_dir else {}
    config = resolve_config(preset, assignments or [], overrides=overrides)
    examination = Examination(config=config, app=app_folder(app), ray_address=ray_address)
    console = Console(highlight=False)
    failed = 0
    for finding in examine(examination):
        console.print(line(finding), soft_wrap=True)
        failed += finding.level == "FAIL"
    if failed:
        console.print(f"{failed} of the checks failed.", style="red")
        raise typer.Exit(1)


def line(finding: Finding) -> Text:
    """One finding as a line."""
    advice = f" → {finding.advice}" if finding.advice else ""
    level = Text(f"{finding.level:<4}", style=STYLES[finding.level])
    return level + Text(f"  {finding.subject}: {finding.detail}{advice}")
