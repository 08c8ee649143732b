# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with a sweep before any of its trials starts."""

from collections.abc import Iterable

from config import ConfigError, Problem

__all__ = ["SweepError"]


class SweepError(ConfigError):
    """All problems of one sweep, one line each.

    Parameters
    ----------
    source : str
        The sweep file, or the sweep's folder.
    problems : Iterable[Problem]
    """

    def __init__(self, source: str, problems: Iterable[Problem]) -> None:
        super().__init__(problems)
        self.source = source
        count = len(self.problems)
        head = "1 problem" if count == 1 else f"{count} problems"
        lines = "\n".join(f"  - {problem}" for problem in self.problems)
        self.args = (f"{head} in the sweep {source}:\n{lines}",)

    def __reduce__(self) -> tuple[type["SweepError"], tuple[str, tuple[Problem, ...]]]:  # type: ignore[override]
        return type(self), (self.source, self.problems)
