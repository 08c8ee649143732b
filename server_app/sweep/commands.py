# SPDX-License-Identifier: Apache-2.0
"""The command lines of a trial: ones that a user could type."""

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from config import RESUME_KEYS
from server_app.sweep.standing import Step, missing_attackers
from server_app.sweep.trials import Trial

__all__ = ["PERMSPLIT", "Launch", "command"]

PERMSPLIT = (sys.executable, "-m", "server_app.cli")
"""What stands for ``permsplit``: the same Python, whether its script is on the path or not."""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """What the trials of a sweep share on the machine.

    Parameters
    ----------
    ray_address : str, optional
        A running Ray cluster to join; None: each trial has a Ray of its own.
    client_cpus : int
        CPUs set aside for a client process.
    client_gpus : float
        GPUs likewise.
    app : Path, optional
        Folder of the Flower app; None: this checkout.
    """

    ray_address: str | None = None
    client_cpus: int = 1
    client_gpus: float = 0.0
    app: Path | None = None

    def arguments(self) -> list[str]:
        """As options of ``permsplit run``."""
        cpus, gpus = str(self.client_cpus), str(self.client_gpus)
        options = ["--client-cpus", cpus, "--client-gpus", gpus, *self.cluster()]
        return [*options, "--app", str(self.app)] if self.app else options

    def cluster(self) -> list[str]:
        """The Ray cluster, as options of ``permsplit run`` and ``permsplit attack``."""
        return ["--ray-address", self.ray_address] if self.ray_address else []


def command(trial: Trial, step: Step, launch: Launch) -> list[str]:
    """Arguments of ``permsplit`` that take ``step`` of a trial."""
    if step is Step.ATTACK:
        return _attack(trial, launch)
    clients = ["--clients", str(trial.clients)]
    if step is Step.RESUME:
        changeable = [key for key in trial.given if key in RESUME_KEYS]
        resumed = ["run", "--resume", str(trial.folder), *clients]
        return [*resumed, *_assignments(trial, changeable), *launch.arguments()]
    places = ["--runs-dir", trial.config.runs_dir, "--run-name", trial.name]
    started = ["run", "--preset", trial.preset, *clients, *places]
    return [*started, *_assignments(trial, trial.given), *launch.arguments()]


def _attack(trial: Trial, launch: Launch) -> list[str]:
    config = trial.config
    options = {
        "--attacker": ",".join(missing_attackers(trial)),
        "--images": config.attack_images,
        "--epochs": config.attack_epochs,
        "--seed": config.seed,
        "--gpus": config.trunk_gpus,
        "--face": config.attack_face,
        "--metrics": config.attack_metrics,
    }
    given = [(name, str(value)) for name, value in options.items() if value != ""]
    return ["attack", str(trial.folder), *(part for pair in given for part in pair),
            *launch.cluster()]  # fmt: skip


def _assignments(trial: Trial, names: Iterable[str]) -> list[str]:
    values = trial.config.model_dump(by_alias=True)
    # JSON writes texts, numbers and truth values as TOML does.
    texts = [f"{name}={json.dumps(values[name], ensure_ascii=False)}" for name in names]
    return [part for text in texts for part in ("--set", text)]
