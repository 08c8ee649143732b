# SPDX-License-Identifier: Apache-2.0
"""``permsplit run``: start a run on this machine or on a Ray cluster, and see it through."""

from typing import Annotated

import typer
from rich.console import Console

from config import ConfigError, Problem
from server_app.cli import options
from server_app.cli.app_folder import app_folder
from server_app.cli.plan import RunPlan, number_of_clients, resolve_config, resume_config
from server_app.cli.ray_address import check_ray_address


def run(
    preset: options.Preset = None,
    assignments: options.Assignments = None,
    clients: options.Clients = None,
    runs_dir: options.RunsDir = None,
    run_name: Annotated[
        str | None, typer.Option("--run-name", help="Name of the run's folder.", metavar="NAME")
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option("--resume", help="Continue this run: a name or a folder.", metavar="RUN"),
    ] = None,
    ray_address: options.RayAddress = None,
    client_cpus: options.ClientCpus = 1,
    client_gpus: options.ClientGpus = 0.0,
    app: options.App = None,
) -> None:
    """Train and attack a split model; exit code 0 only if the run completed."""
    check_ray_address(ray_address)
    if resume:
        _refuse_with_resume(preset, run_name)
        config = resume_config(resume, assignments or [], runs_dir)
    else:
        overrides = {"runs-dir": runs_dir and str(runs_dir), "run-name": run_name}
        given = {key: value for key, value in overrides.items() if value is not None}
        config = resolve_config(preset, assignments or [], overrides=given)
    plan = RunPlan(
        config=config,
        app=app_folder(app),
        clients=number_of_clients(clients, config),
        client_cpus=client_cpus,
        client_gpus=client_gpus,
        ray_address=ray_address,
    )
    raise typer.Exit(_launch(plan))


def _launch(plan: RunPlan) -> int:
    from server_app.cli.launch import launch

    console = Console(highlight=False)
    console.print(f"Run {plan.folder} with {plan.clients} clients", soft_wrap=True)
    outcome = launch(plan, console)
    if outcome.exit_code == 0:
        console.print(f"Completed: {plan.folder}", style="green", soft_wrap=True)
    else:
        console.print(f"Failed: {outcome.summary}", style="red", markup=False, soft_wrap=True)
        if any(plan.folder.glob("checkpoints/round-*")):
            console.print(f"Continue it: permsplit run --resume {plan.folder}", soft_wrap=True)
    return outcome.exit_code


def _refuse_with_resume(preset: str | None, run_name: str | None) -> None:
    message = "does not go with --resume, which takes the run's own keys; change some with --set"
    given = {"--preset": preset, "--run-name": run_name}
    problems = [Problem(name, value, message) for name, value in given.items() if value]
    if problems:
        raise ConfigError(problems)
