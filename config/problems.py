# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a configuration: problems are collected, then raised once."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One thing wrong.

    Parameters
    ----------
    key : str
        The key as written in TOML, such as ``image-size``.
    value : object
        The value given.
    message : str
        What is wrong and what is allowed.
    """

    key: str
    value: object
    message: str

    def __str__(self) -> str:
        return f"{self.key} = {_toml(self.value)}: {self.message}"


class ConfigError(ValueError):
    """All problems of one configuration, one line each."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        head = "1 problem" if count == 1 else f"{count} problems"
        lines = "\n".join(f"  - {problem}" for problem in self.problems)
        super().__init__(f"{head} in the run configuration:\n{lines}")

    def __reduce__(self) -> tuple[type["ConfigError"], tuple[tuple[Problem, ...]]]:
        return type(self), (self.problems,)


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)
