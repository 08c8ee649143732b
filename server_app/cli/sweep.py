# SPDX-License-Identifier: Apache-2.0
"""``permsplit sweep``: many runs of one study."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from config import RunConfig
from server_app.cli import options
from server_app.cli.values import parse_assignments

if TYPE_CHECKING:
    from server_app.sweep import Launch, SweepDefinition, Trial, TrialTable


def sweep(
    file: Annotated[
        str, typer.Argument(help="TOML file of a sweep, or a shipped one's name.", metavar="SWEEP")
    ],
    runs_dir: Annotated[
        Path | None,
        typer.Option("--runs-dir", help="The sweep's folder is made in this one.", metavar="DIR"),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", help="A key of all trials; may be repeated.", metavar="KEY=VALUE"),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Trials at a time.")] = 1,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check all, and print what would be done.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try again what failed before.")
    ] = False,
    ray_address: options.RayAddress = None,
    client_cpus: options.ClientCpus = 1,
    client_gpus: options.ClientGpus = 0.0,
    app: options.App = None,
) -> None:
    """Run a grid of runs, and report on them; exit code 0 only if every trial is finished.

    Started again, it skips what is done and continues what was begun.
    """
    from server_app.cli.app_folder import app_folder
    from server_app.sweep import Launch, load_sweep, plan_trials

    definition = _with(load_sweep(file), assignments or [], file)
    folder = (runs_dir or Path(RunConfig().runs_dir)).expanduser().resolve() / definition.name
    trials = plan_trials(definition, folder, file)
    app_folder(app)
    launch = Launch(
        ray_address=ray_address,
        client_cpus=client_cpus,
        client_gpus=client_gpus,
        app=app.expanduser().resolve() if app else None,
    )
    _check_begun(trials, folder)
    if dry_run:
        _print_plan(trials, launch)
    else:
        raise typer.Exit(_run(definition, trials, folder, launch, jobs, retry_failed))


def _with(definition: "SweepDefinition", texts: list[str], file: str) -> "SweepDefinition":
    """The sweep with the keys of ``--set``."""
    from server_app.sweep import SweepError

    values, problems = parse_assignments(texts)
    if problems:
        raise SweepError(file, problems)
    return definition.with_common(values, file)


def _check_begun(trials: "list[Trial]", folder: Path) -> None:
    """Trials that were begun must be those that are asked for now."""
    from server_app.sweep import SweepError, differences

    problems = [problem for trial in trials for problem in differences(trial)]
    if problems:
        raise SweepError(str(folder), problems)


def _print_plan(trials: "list[Trial]", launch: "Launch") -> None:
    import shlex

    from server_app.sweep import Step, command, next_step

    for trial in trials:
        step = next_step(trial)
        if step is Step.NOTHING:
            typer.echo(f"# {trial.name}: is there already")
        else:
            typer.echo(f"# {trial.name}: {step.value}")
            typer.echo(f"permsplit {shlex.join(command(trial, step, launch))}")


def _run(
    definition: "SweepDefinition",
    trials: "list[Trial]",
    folder: Path,
    launch: "Launch",
    jobs: int,
    retry_failed: bool,
) -> int:
    from reports import atomic
    from reports.sweep_folder import GRID
    from reports.sweep_report import write_sweep_report
    from server_app.cli.launch.interrupts import Interrupted, Interrupts
    from server_app.sweep import TrialTable, only_sweep_in, process_starter, run_trials
    from server_app.sweep.view import SweepView

    console = Console(highlight=False)
    folder.mkdir(parents=True, exist_ok=True)
    with only_sweep_in(folder) as lock:
        _check_begun(trials, folder)  # once more, now that nobody else works there
        atomic.write_text(folder / GRID, definition.as_toml())
        table = TrialTable(folder, trials)
        console.print(f"Sweep {folder}: {len(trials)} trials", soft_wrap=True)
        try:
            with Interrupts(), SweepView(console, len(trials)) as view:
                start = process_starter(launch, (lock,))
                run_trials(trials, table, start, view, jobs=jobs, retry_failed=retry_failed)
        except Interrupted as interrupt:
            console.print("Stopped; the same command goes on from here.", style="yellow")
            return 128 + interrupt.number
        report = write_sweep_report(folder)
    return _tell(console, table, report)


def _tell(console: Console, table: "TrialTable", report: Path) -> int:
    """Say how it went; the exit code."""
    failures = list(table.failed())
    if failures:
        console.print(f"Failed: {len(failures)} of {len(table.rows)} trials", style="red")
        for name, error in failures:
            console.print(f"  {name}: {error}", style="red", markup=False, soft_wrap=True)
        console.print("Try them again with --retry-failed.")
    else:
        console.print(f"Completed: {len(table.rows)} trials", style="green")
    console.print(f"Report: {report}", soft_wrap=True)
    return 1 if failures else 0
