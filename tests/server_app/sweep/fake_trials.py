# SPDX-License-Identifier: Apache-2.0
"""Sweeps whose trials are made in milliseconds: folders as a run and its attackers leave them."""

import json
from collections.abc import Callable, Sequence

from reports import RunFolder
from reports.schemas import ATTACKS
from server_app.sweep import Job, Row, Running, Step, Trial, missing_attackers

MakeTrials = Callable[..., list[Trial]]


class FakeJob:
    """Work that is over when ``polls`` polls have been made."""

    def __init__(self, code: int = 0, error: str = "", polls: int = 0) -> None:
        self.code, self.message, self.polls = code, error, polls
        self.interrupted = self.killed = False

    def poll(self) -> int | None:
        if self.interrupted:
            return 130
        self.polls -= 1
        return self.code if self.polls < 0 else None

    def error(self) -> str:
        return self.message

    def interrupt(self) -> None:
        self.interrupted = True

    def kill(self) -> None:
        self.killed = True


class FakeRunner:
    """Does each step at once, and notes what it was asked for; ``broken`` trials fail."""

    def __init__(self, broken: Sequence[str] = ()) -> None:
        self.broken = set(broken)
        self.asked: list[tuple[str, Step]] = []

    def __call__(self, trial: Trial, step: Step) -> Job:
        self.asked.append((trial.name, step))
        if trial.name in self.broken:
            return FakeJob(1, "RuntimeError: out of memory")
        if step in (Step.START, Step.AFRESH):
            begin(trial)
        train(trial, trial.config.rounds)
        attack(trial, missing_attackers(trial))
        return FakeJob()

    def steps(self) -> list[str]:
        return [step.value for _, step in self.asked]


class Notes:
    """A watcher that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.most = 0

    def begun(self, running: Running) -> None:
        self.told.append(f"begun {running.trial.name}")

    def ended(self, trial: Trial, row: Row) -> None:
        self.told.append(f"{row.status} {trial.name}")

    def going(self, running: Sequence[Running]) -> None:
        self.most = max(self.most, len(running))

    def stopping(self) -> None:
        self.told.append("stopping")


def begin(trial: Trial, **changes: object) -> RunFolder:
    """The trial's run folder, as it is before the first round."""
    config = trial.config.model_dump(by_alias=True) | changes
    return RunFolder.create(trial.config.runs_dir, trial.name, config)


def train(trial: Trial, round: int) -> None:
    """A checkpoint after ``round``."""
    with RunFolder.open(trial.folder).new_checkpoint(round):
        pass


def attack(trial: Trial, names: Sequence[str], **options: object) -> None:
    """Results of attackers, as ``attacks.assess`` leaves them."""
    config = trial.config
    asked = {"images": config.attack_images, "epochs": config.attack_epochs}
    asked |= {
        "seed": config.seed,
        "face": config.attack_face,
        "metrics": config.attack_metrics,
        "round": config.rounds,
        "client": 0,
    }
    for name in names:
        row: dict[str, object] = {
            column: 0 if "int" in str(kind) else 0.5 if "double" in str(kind) else ""
            for column, kind in ATTACKS.items()
        }
        RunFolder.open(trial.folder).append_attacks([row | {"attack": name}])
        workshop = trial.folder / "attacks" / name
        workshop.mkdir(parents=True, exist_ok=True)
        (workshop / "options.json").write_text(json.dumps(asked | options))
        (workshop / "finished.json").write_text("{}")
