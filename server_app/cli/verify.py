# SPDX-License-Identifier: Apache-2.0
"""``permsplit verify``: the paper's experiments, beside the paper's numbers."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    import pandas as pd

    from equivariance.experiments import Experiment

NUMBERS = ("value", "paper", "max_abs", "max_rel", "tolerance")


def verify(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="The experiment.")] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", help="Sets one option; may be repeated.", metavar="OPTION=VALUE"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the table as CSV.", metavar="FILE.csv")
    ] = None,
    show: Annotated[
        bool, typer.Option("--list", help="List all experiments, or with NAME its options.")
    ] = False,
) -> None:
    """Run an experiment of the paper and check its claims; exit code 1 if one does not hold."""
    from equivariance.experiments import EXPERIMENTS, ExperimentError, failures, parse_options

    if name is None:
        if not show:
            _refuse("give the name of an experiment; permsplit verify --list shows all")
        _print(_experiments_table(EXPERIMENTS))
        return
    if name not in EXPERIMENTS:
        _refuse(f"experiment {name}: unknown; allowed are {', '.join(EXPERIMENTS)}")
    experiment = EXPERIMENTS[name]
    if show:
        _print(_options_table(experiment))
        return
    try:
        options = parse_options(experiment.options, _parse(assignments or ()))
        _check_writable(out)
        table = experiment.run(options)
    except ExperimentError as error:
        _refuse(str(error))
    _print(results_table(name, table))
    if out is not None:
        try:
            table.to_csv(out, index=False)
        except OSError as error:
            _refuse(f"--out {out}: cannot be written: {error.strerror or error}")
    broken = failures(table)
    if len(broken):
        cases = "; ".join(f"{row.quantity}, {row.case}" for row in broken.itertuples())
        Console(stderr=True).print(
            f"{name}: does not hold: {cases}", style="red", markup=False, soft_wrap=True
        )
        raise typer.Exit(1)


def results_table(title: str, table: "pd.DataFrame") -> Table:
    """The rows for people: what is not claimed or not known stays empty."""
    shown = Table(title=title, header_style="bold", title_justify="left")
    for column in table.columns:
        shown.add_column(column.replace("_", " "), justify="right" if column in NUMBERS else "left")
    for row in table.itertuples(index=False):
        style = "red" if row.holds is False else None
        shown.add_row(*(escape(_cell(value)) for value in row), style=style)
    return shown


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return "0" if value == 0 else f"{value:.4g}"
    return str(value)


def _experiments_table(experiments: "dict[str, Experiment]") -> Table:
    shown = Table("experiment", "what it shows", header_style="bold")
    for name, experiment in experiments.items():
        shown.add_row(name, experiment.summary)
    return shown


def _options_table(experiment: "Experiment") -> Table:
    from equivariance.experiments import describe_options

    shown = Table("option", "allowed", "default", "meaning", header_style="bold")
    shown.columns[0].no_wrap = True
    for row in describe_options(experiment.options):
        shown.add_row(*map(escape, row))
    return shown


def _parse(assignments: "list[str] | tuple[()]") -> dict[str, str]:
    """Split ``option=value`` texts; a later value of an option replaces an earlier one."""
    values = {}
    for text in assignments:
        key, equals, value = text.partition("=")
        if not equals:
            _refuse(f"--set {text}: write OPTION=VALUE")
        values[key.strip()] = value.strip()
    return values


def _check_writable(out: Path | None) -> None:
    """An experiment may take hours: find out before that its table has no place."""
    if out is not None and not out.parent.is_dir():
        _refuse(f"--out {out}: the folder {out.parent} does not exist")
    if out is not None and out.is_dir():
        _refuse(f"--out {out}: is a folder; give a file")
    if out is not None and not out.exists():
        try:
            out.touch()
            out.unlink()
        except OSError as error:
            _refuse(f"--out {out}: cannot be written: {error.strerror or error}")


def _print(shown: Table) -> None:
    console = Console()
    if not console.is_terminal:  # a file or a pipe has no width: take enough
        console = Console(width=160)
    console.print(shown)


def _refuse(message: str) -> NoReturn:
    Console(stderr=True).print(message, style="red", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(2)
