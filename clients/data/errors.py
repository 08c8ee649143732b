# SPDX-License-Identifier: Apache-2.0
"""The one error of this package, and how its lines are worded."""

import difflib
from collections.abc import Iterable, Sequence

__all__ = ["DataError", "did_you_mean", "some"]

SHOWN = 5


class DataError(ValueError):
    """Everything wrong with the data, one line each.

    Parameters
    ----------
    *problems : str
        Each names the field or file, the value found and what is expected.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__(*problems)
        self.problems = problems

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return self.problems[0]
        lines = "".join(f"\n  - {problem}" for problem in self.problems)
        return f"{len(self.problems)} problems with the data:{lines}"


def some(items: Iterable[object]) -> str:
    """Name the first few items, and count the rest."""
    items = list(items)
    text = ", ".join(str(item) for item in items[:SHOWN])
    return f"{text} and {len(items) - SHOWN} more" if len(items) > SHOWN else text


def did_you_mean(word: str, allowed: Sequence[str]) -> str:
    """Suggest the nearest allowed word, else name all of them."""
    near = difflib.get_close_matches(word.lower(), [name.lower() for name in allowed], n=1)
    if near:
        return f"did you mean {next(name for name in allowed if name.lower() == near[0])!r}?"
    return f"allowed: {', '.join(allowed)}"
