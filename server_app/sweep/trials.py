# SPDX-License-Identifier: Apache-2.0
"""The trials of a sweep: every run to be, complete and checked before any of them starts."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from config import ConfigError, Problem, RunConfig, load_preset, parse_run_config
from server_app.checks import RULES, check_data
from server_app.cli.plan import DEFAULT_PRESET
from server_app.cli.values import absolute_paths
from server_app.sweep.definition import SweepDefinition
from server_app.sweep.errors import SweepError
from server_app.sweep.names import trial_names

__all__ = ["Trial", "plan_trials"]

NAMED = 3
"""So many trials are named in a problem; of more the number is told."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One run of a sweep.

    Parameters
    ----------
    name : str
        Name of its run folder.
    varied : Mapping
        The keys that tell it from the others, with its values.
    given : tuple of str
        Keys that the sweep sets; all others are the preset's.
    config : RunConfig
        All keys, paths absolute.
    preset : str
    clients : int
        Simulated clients.
    """

    name: str
    varied: Mapping[str, object]
    given: tuple[str, ...]
    config: RunConfig
    preset: str
    clients: int

    @property
    def folder(self) -> Path:
        """Its run folder, which exists once the trial has begun."""
        return Path(self.config.runs_dir) / self.name

    @property
    def log(self) -> Path:
        """What its processes print."""
        return Path(self.config.runs_dir) / f"{self.name}.log"


def plan_trials(sweep: SweepDefinition, folder: Path, source: str) -> list[Trial]:
    """All trials of a sweep, in its order.

    Parameters
    ----------
    sweep : SweepDefinition
    folder : Path
        Folder of the sweep, absolute: the trials' ``runs-dir``. Clients keep their states in
        ``client-state`` below it, unless the sweep sets ``state-dir``.
    source : str
        What to call the sweep in an error.

    Raises
    ------
    SweepError
        With every problem of every trial: keys and values, what does not fit together, the data.
    """
    own = list(sweep.combinations())
    try:
        preset = load_preset(sweep.preset or DEFAULT_PRESET)
    except ConfigError as error:
        raise SweepError(source, error.problems) from error
    problems = [*_twice(own)]
    if problems:
        raise SweepError(source, problems)
    found: dict[str, list[Problem]] = {}
    trials: list[Trial] = []
    for name, values in zip(trial_names(own), own, strict=True):
        try:
            trials.append(_trial(sweep, preset, name, values, folder))
        except ConfigError as error:
            found[name] = list(error.problems)
    for trial_, trouble in _unfit(trials):
        found.setdefault(trial_.name, []).append(trouble)
    if found:
        raise SweepError(source, _grouped(found, len(own)))
    return trials


def _trial(
    sweep: SweepDefinition,
    preset: Mapping[str, object],
    name: str,
    own: Mapping[str, object],
    folder: Path,
) -> Trial:
    places = {"runs-dir": str(folder), "run-name": name, "resume": False}
    given = {"state-dir": str(folder / "client-state"), **sweep.common, **own}
    values = {**RunConfig().model_dump(by_alias=True), **preset, **given, **places}
    config = parse_run_config(absolute_paths(values, Path.cwd()), rules=RULES)
    resolved = config.model_dump(by_alias=True)
    return Trial(
        name=name,
        varied={key: resolved[key] for key in sweep.varied},
        given=tuple(given),
        config=config,
        preset=sweep.preset or DEFAULT_PRESET,
        clients=sweep.clients or max(2, config.min_clients),
    )


def _twice(own: Iterable[Mapping[str, object]]) -> Iterator[Problem]:
    seen: list[Mapping[str, object]] = []
    for values in own:
        if values in seen:
            told = ", ".join(f"{key} = {value}" for key, value in values.items())
            yield Problem("trial", told, "comes up twice; each must differ from the others")
        seen.append(values)


def _unfit(trials: Iterable[Trial]) -> Iterator[tuple[Trial, Problem]]:
    """What is wrong with the number of clients, and with the data; each source is read once."""
    from clients.owner import data_spec

    checked: dict[str, list[Problem]] = {}
    for trial in trials:
        if trial.config.min_clients > trial.clients:
            message = f"more than the sweep's {trial.clients} clients"
            yield trial, Problem("min-clients", trial.config.min_clients, message)
        spec = f"{data_spec(trial.config)} {trial.clients} {bool(trial.config.attack)}"
        if spec not in checked:
            checked[spec] = check_data(trial.config, trial.clients)
        for problem in checked[spec]:
            yield trial, problem


def _grouped(found: Mapping[str, Iterable[Problem]], trials: int) -> list[Problem]:
    """Each problem once, with the trials that have it."""
    names: dict[str, list[str]] = {}
    first: dict[str, Problem] = {}
    for name, problems in found.items():
        for problem in problems:
            first.setdefault(str(problem), problem)
            names.setdefault(str(problem), []).append(name)
    return [
        Problem(problem.key, problem.value, f"{problem.message} ({_told(names[text], trials)})")
        for text, problem in first.items()
    ]


def _told(names: list[str], trials: int) -> str:
    if len(names) == trials:
        return "all trials" if trials > 1 else f"trial {names[0]}"
    if len(names) <= NAMED + 1:
        return f"trial{'s' if len(names) > 1 else ''} {', '.join(names)}"
    return f"trials {', '.join(names[:NAMED])} and {len(names) - NAMED} more"
