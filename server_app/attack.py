# SPDX-License-Identifier: Apache-2.0
"""Attacks as Ray tasks: on a GPU if the run's trunk has one, and with progress for who waits."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import ray
import torch
from ray.exceptions import RayTaskError

from attacks import AttackError, AttackOptions, assess
from config import RunConfig
from reports import RunFolder, atomic

PROGRESS = "progress.json"

Watch = Callable[[str, str, int, int], None]
"""``watch(attacker, stage, done, total)``."""


class AttackFailed(RuntimeError):
    """An attacker's task failed; the text holds its traceback."""


def options_of(config: RunConfig) -> AttackOptions:
    """What a run's configuration asks of its attackers."""
    return AttackOptions(
        images=config.attack_images,
        epochs=config.attack_epochs,
        seed=config.seed,
        face=config.attack_face,
        metrics=config.attack_metrics,
    )


def attack_run(
    run: RunFolder, names: list[str], options: AttackOptions, *, gpus: float, watch: Watch
) -> list[dict[str, object]]:
    """Let attackers at a run, one after another, each in a Ray task. Ray must be up.

    Parameters
    ----------
    run : RunFolder
    names : list of str
        Keys of ``attacks.ATTACKERS``.
    options : AttackOptions
    gpus : float
        GPUs of each task; 0: the CPU.
    watch : callable
        Told of progress about once a second.

    Returns
    -------
    list of dict
        The rows that were added to the run's table.

    Raises
    ------
    AttackError
        If the run cannot be attacked so, or Ray has fewer GPUs.
    AttackFailed
        If an attacker fails otherwise, with its traceback.
    """
    there = float(ray.cluster_resources().get("GPU", 0))
    if gpus > there:
        raise AttackError(f"gpus = {gpus:g}: Ray has {there:g} GPUs; 0 takes the CPU")
    path = run.path.absolute()
    # Flower's workers hold all CPUs of a simulation, so a task must ask for none.
    task = ray.remote(num_cpus=0, num_gpus=gpus, max_retries=0)(_attack)
    rows: list[dict[str, object]] = []
    for name in names:
        reference = task.remote(str(path), name, options)
        while not ray.wait([reference], timeout=1.0)[0]:
            watch(name, *_told(path / "attacks" / name / PROGRESS))
        try:
            rows += ray.get(reference)
        except RayTaskError as error:
            if isinstance(error.cause, AttackError):
                raise error.cause from None
            raise AttackFailed(f"attack {name} on {run.path} failed:\n{error}") from error
        watch(name, "done", 1, 1)
    return rows


def _attack(path: str, name: str, options: AttackOptions) -> list[dict[str, object]]:
    """In the task: attack, and write progress beside what is learned."""
    torch.set_num_threads(os.cpu_count() or 1)  # Ray sets one where no CPU is asked for
    cuda = bool(ray.get_gpu_ids()) and torch.cuda.is_available()
    file, told = Path(path) / "attacks" / name / PROGRESS, 0.0

    def progress(stage: str, done: int, total: int) -> None:
        nonlocal told
        if time.monotonic() - told > 0.5 and file.parent.is_dir():
            told = time.monotonic()
            atomic.write_text(file, json.dumps({"stage": stage, "done": done, "total": total}))

    device = torch.device("cuda" if cuda else "cpu")
    return assess(Path(path), name, options, progress, device)


def _told(path: Path) -> tuple[str, int, int]:
    """Stage, done and total as last written."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "start", 0, 1
    return str(told["stage"]), int(told["done"]), int(told["total"])
