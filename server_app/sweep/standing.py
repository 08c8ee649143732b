# SPDX-License-Identifier: Apache-2.0
"""How far a trial is, read from its run folder alone, and so what is to be done next."""

import json
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

from attacks import attackers_of
from attacks.assess import FINISHED, OPTIONS
from config import RESUME_KEYS, Problem, RunConfig, keys
from reports import RunFolder, RunFolderError
from server_app.sweep.trials import Trial

__all__ = ["Step", "differences", "missing_attackers", "next_step"]


class Step(Enum):
    """What a trial needs next."""

    START = "start"
    """There is no folder."""

    AFRESH = "afresh"
    """The folder has no checkpoint to go on from: it is set aside, and the run starts anew."""

    RESUME = "resume"
    """Training stopped at a checkpoint."""

    ATTACK = "attack"
    """Training is complete, an attacker's results are missing."""

    NOTHING = "nothing"
    """All that was asked for is there."""


def next_step(trial: Trial) -> Step:
    """What a trial needs next."""
    if not trial.folder.exists():
        return Step.START
    try:
        run = RunFolder.open(trial.folder)
        last = run.latest_checkpoint()
        if last is None:
            return Step.AFRESH
        if last != run.checkpoint(trial.config.rounds):
            return Step.RESUME
        return Step.ATTACK if missing_attackers(trial) else Step.NOTHING
    except RunFolderError:
        return Step.AFRESH


def missing_attackers(trial: Trial) -> list[str]:
    """The trial's attackers whose results, with the options asked for, are not in its table."""
    run = RunFolder.open(trial.folder)
    try:
        found = set(run.attacks()["attack"])
    except RunFolderError:  # the attack will say what is broken; what was trained stays
        found = set()
    wanted = attackers_of(trial.config.attack)
    return [n for n in wanted if n not in found or not _as_asked(run.path / "attacks" / n, trial)]


def differences(trial: Trial) -> Iterator[Problem]:
    """Keys in which a trial's begun run differs from what the sweep asks for now.

    A folder that will be set aside anyway does not count.
    """
    if next_step(trial) in (Step.START, Step.AFRESH):
        return
    before, now = RunFolder.open(trial.folder).config(), trial.config.model_dump(by_alias=True)
    defaults = RunConfig().model_dump(by_alias=True)
    for key in keys():
        was = before.get(key, defaults[key])
        if key not in (*RESUME_KEYS, "run-name") and was != now[key]:
            yield Problem(
                f"{trial.name}: {key}",
                now[key],
                f"the run {trial.folder} has {was!r}; give the sweep another name or --runs-dir",
            )


def _as_asked(workshop: Path, trial: Trial) -> bool:
    """Whether an attacker's folder says that it came to its end, with the options of the trial."""
    try:
        options = json.loads((workshop / OPTIONS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    config = trial.config
    asked: dict[str, object] = {
        "images": config.attack_images,
        "epochs": config.attack_epochs,
        "seed": config.seed,
        "face": config.attack_face,
        "metrics": config.attack_metrics,
        "round": config.rounds,
    }
    same = all(options.get(name) == value for name, value in asked.items())
    return same and (workshop / FINISHED).is_file()
