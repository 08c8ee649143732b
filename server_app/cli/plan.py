# SPDX-License-Identifier: Apache-2.0
"""What ``permsplit run`` is about to do, complete and checked before anything starts."""

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from config import ConfigError, Problem, RunConfig, load_preset, parse_run_config
from server_app.cli.values import absolute_paths, new_run_name, parse_assignments

DEFAULT_PRESET = "smoke"


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """One run to be.

    Parameters
    ----------
    config : RunConfig
        All keys; paths are absolute, ``run-name`` is set.
    app : Path
        Folder of the Flower app.
    clients : int
        Number of simulated clients.
    client_cpus : int
        CPUs that Ray sets aside for each client process.
    client_gpus : float
        GPUs likewise.
    ray_address : str | None
        A running Ray cluster to join; None: a Ray of its own on this machine.
    """

    config: RunConfig
    app: Path
    clients: int
    client_cpus: int = 1
    client_gpus: float = 0.0
    ray_address: str | None = None

    @property
    def folder(self) -> Path:
        """The run's folder; the ServerApp makes it."""
        return Path(self.config.runs_dir) / self.config.run_name


def resolve_config(
    preset: str | None,
    assignments: Iterable[str],
    *,
    overrides: Mapping[str, object] | None = None,
) -> RunConfig:
    """The validated configuration of ``preset`` with ``assignments`` and then ``overrides``.

    Raises
    ------
    ConfigError
        With all problems.
    """
    name = preset or DEFAULT_PRESET
    assigned, problems = parse_assignments(assignments)
    values = load_preset(name) | assigned | dict(overrides or {})
    values = absolute_paths(RunConfig().model_dump(by_alias=True) | values, Path.cwd())
    if not values["run-name"] and not values["resume"]:
        values["run-name"] = new_run_name(name, Path(str(values["runs-dir"])), datetime.now())
    return _validated(values, problems)


def resume_config(run: str, assignments: Iterable[str], runs_dir: Path | None) -> RunConfig:
    """The configuration that continues ``run``: its own ``config.toml`` with ``assignments``.

    Parameters
    ----------
    run : str
        A name in the folder of all runs, or a path to the run's folder.
    assignments : Iterable[str]
        Keys to change, such as ``step-timeout=600``.
    runs_dir : Path | None
        Folder of all runs; None: the default of the key ``runs-dir``.

    Raises
    ------
    ConfigError
        If there is no such run, or its keys have problems.
    """
    given = Path(run).expanduser()
    in_runs = (runs_dir or Path(RunConfig().runs_dir)).expanduser() / run
    folder = (in_runs if (in_runs / "config.toml").is_file() else given).resolve()
    try:
        stored = tomllib.loads((folder / "config.toml").read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        places = f"neither {in_runs} nor {given} holds a readable config.toml"
        raise ConfigError([Problem("--resume", run, places)]) from error
    assigned, problems = parse_assignments(assignments)
    values = absolute_paths(stored | assigned, Path.cwd())
    values |= {"runs-dir": str(folder.parent), "run-name": folder.name, "resume": True}
    return _validated(values, problems)


def number_of_clients(given: int | None, config: RunConfig) -> int:
    """How many clients to simulate: ``given``, or those of the resumed run, or ``min-clients``.

    Raises
    ------
    ConfigError
        If they are fewer than ``min-clients``, or the data cannot serve them.
    """
    clients = given or _clients_before(config) or max(2, config.min_clients)
    problems = []
    if clients < config.min_clients:
        problems.append(
            Problem("min-clients", config.min_clients, f"more than --clients {clients}")
        )
    from server_app.checks import check_data

    problems += check_data(config, clients)
    if problems:
        raise ConfigError(problems)
    return clients


def _validated(values: Mapping[str, object], problems: list[Problem]) -> RunConfig:
    """The configuration, if ``values`` and what was found before have no problem."""
    from server_app.checks import RULES

    try:
        config = parse_run_config(values, rules=(*RULES, _run_folder))
    except ConfigError as error:
        raise ConfigError([*problems, *error.problems]) from error
    if problems:
        raise ConfigError(problems)
    return config


def _run_folder(config: RunConfig) -> Iterable[Problem]:
    """A new run needs a free name, a resumed one its folder."""
    folder = Path(config.runs_dir) / config.run_name
    if config.resume and config.run_name and not folder.is_dir():
        yield Problem("resume", True, f"there is no run {folder}")
    if not config.resume and config.run_name and folder.exists():
        yield Problem(
            "run-name", config.run_name, f"{folder} exists; choose another, or use --resume"
        )


def _clients_before(config: RunConfig) -> int | None:
    if not config.resume:
        return None
    try:
        facts = json.loads((Path(config.runs_dir) / config.run_name / "run.json").read_text())
        clients = facts.get("clients")
    except (OSError, ValueError, AttributeError):
        return None
    return clients if isinstance(clients, int) and clients > 0 else None
