# SPDX-License-Identifier: Apache-2.0
"""From Flower's flat run config to a :class:`~config.fields.RunConfig`, or all its problems."""

import difflib
from collections.abc import Callable, Iterable, Mapping

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from config.fields import RunConfig, keys
from config.problems import ConfigError, Problem
from config.rules import RULES

Rule = Callable[[RunConfig], Iterable[Problem]]


def parse_run_config(values: Mapping[str, object], rules: Iterable[Rule] = ()) -> RunConfig:
    """Validate ``values`` and return the frozen configuration.

    Parameters
    ----------
    values : Mapping[str, object]
        Flat, kebab-case keys, as Flower hands them over in ``context.run_config``. Missing keys
        take their defaults.
    rules : Iterable[Rule]
        Further checks by the packages that own a registry (defences, schedules, models, ...).

    Returns
    -------
    RunConfig

    Raises
    ------
    ConfigError
        With every problem found: unknown keys, wrong types and values, and what does not fit
        together among the keys that are right by themselves.
    """
    problems = list(_field_problems(values))
    broken = {problem.key for problem in problems}
    sound = RunConfig.model_validate({k: v for k, v in values.items() if k not in broken})
    for rule in (*RULES, *rules):
        problems += [problem for problem in rule(sound) if problem.key not in broken]
    if problems:
        raise ConfigError(problems)
    return sound


def _field_problems(values: Mapping[str, object]) -> Iterable[Problem]:
    try:
        RunConfig.model_validate(dict(values))
    except ValidationError as error:
        for detail in error.errors():
            yield _problem(detail, values)


def _problem(detail: ErrorDetails, values: Mapping[str, object]) -> Problem:
    key = str(detail["loc"][0])
    if detail["type"] == "extra_forbidden":
        close = difflib.get_close_matches(key, keys(), n=1)
        hint = f"did you mean '{close[0]}'?" if close else f"allowed are {', '.join(keys())}"
        return Problem(key, values[key], f"unknown key; {hint}")
    message = detail["msg"]
    return Problem(key, values.get(key), message[0].lower() + message[1:])
