# SPDX-License-Identifier: Apache-2.0
"""How a run ended: what Flower says, what the run's folder says, and how permsplit exits."""

import json
from dataclasses import dataclass
from pathlib import Path

from server_app.cli.launch.flower import FlowerRun

_SILENT_DEATH = (
    "the process of ServerApp and Ray died without a traceback, often for lack of memory; "
    "try a smaller batch-size or fewer clients at once (--client-cpus)"
)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The end of a run.

    Parameters
    ----------
    exit_code : int
        0 completed, 1 failed, 128 + signal interrupted.
    error : str
        Why it failed; empty if it did not.
    """

    exit_code: int
    error: str = ""

    @property
    def summary(self) -> str:
        """The last line of the error, which names it."""
        lines = [line.strip() for line in self.error.splitlines() if line.strip()]
        last = lines[-1] if lines else "unknown reason"
        return last if len(last) <= 500 else f"{last[:500]} ..."


def judge(run: FlowerRun | None, folder: Path) -> Outcome:
    """The outcome from Flower's record and from ``run.json``; either can tell of a failure."""
    facts = read_facts(folder)
    if run is None:
        return Outcome(exit_code=1, error="Flower did not accept the run")
    if run.completed and facts.get("status") not in ("failed", "stopped"):
        return Outcome(exit_code=0)
    if run.status == "finished:stopped":
        return Outcome(exit_code=1, error="stopped")
    return Outcome(exit_code=1, error=_reason(facts, run))


def read_facts(folder: Path) -> dict[str, object]:
    """What ``run.json`` holds; empty if there is none."""
    try:
        facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


def mark_unfinished(folder: Path, outcome: Outcome) -> None:
    """Note the end in ``run.json`` if the ServerApp had no chance to."""
    if read_facts(folder).get("status") == "running":
        from reports import RunFolder

        interrupted = outcome.exit_code > 128
        RunFolder(folder).set_status("stopped" if interrupted else "failed", outcome.error)


def _reason(facts: dict[str, object], run: FlowerRun) -> str:
    if facts.get("error"):
        return str(facts["error"])
    if "No heartbeat" in run.details:
        return _SILENT_DEATH
    return run.details or f"Flower says {run.status}"
