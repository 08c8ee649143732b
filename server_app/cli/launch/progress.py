# SPDX-License-Identifier: Apache-2.0
"""``progress.json``, which the ServerApp replaces as it goes."""

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where a run is just now."""

    round: int = 0
    rounds: int = 0
    step: int = 0
    steps: int = 0
    phase: str = ""
    images_per_second: float | None = None
    message: str = ""

    @property
    def fraction(self) -> float:
        """Share of the run that is done, 0 .. 1; only training counts, what follows it does not."""
        if self.rounds <= 0:
            return 0.0
        within = self.step / self.steps if self.steps > 0 else 0.0
        if self.phase not in ("", "train"):
            within = 1.0
        return min(max((self.round - 1 + min(within, 1.0)) / self.rounds, 0.0), 1.0)

    def __str__(self) -> str:
        parts = [f"round {self.round}/{self.rounds}"] if self.rounds else []
        parts += [self.phase] if self.phase else []
        parts += [f"step {self.step}/{self.steps}"] if self.steps else []
        if self.images_per_second:
            parts.append(f"{self.images_per_second:,.0f} images/s")
        return " · ".join([*parts, *([self.message] if self.message else [])])


def read_progress(path: Path, since: float = 0.0) -> Progress | None:
    """The progress in ``path``, leaving out unknown keys.

    None while there is none that was written after ``since`` (seconds, as ``time.time`` counts):
    a resumed run still has that of its last session.
    """
    try:
        if path.stat().st_mtime < since:
            return None
        values = json.loads(path.read_text(encoding="utf-8"))
        known = {name: values[name] for name in Progress.__annotations__ if name in values}
    except (OSError, ValueError, TypeError):
        return None
    return Progress(**known)
