# SPDX-License-Identifier: Apache-2.0
"""A run from its configuration to its report."""

import os
import time
import traceback
from dataclasses import dataclass
from logging import INFO, WARNING
from pathlib import Path

import ray
from flwr.app import Message
from flwr.common.logger import log
from flwr.serverapp import Grid
from torch import Tensor

from attacks import attackers_of
from clients.protocol import Action, compose, weights_of
from config import RESUME_KEYS, ConfigError, Problem, RunConfig, keys
from reports import RunFolder
from server_app.attack import attack_run, options_of
from server_app.checkpoint import load_checkpoint
from server_app.observer import RunObserver
from server_app.trunk_handle import RayTrunk
from split import ModelSpec, OptimiserSpec, TrunkSpec
from strategies import (
    SCHEDULES,
    Roster,
    RunFailed,
    RunState,
    SplitStrategy,
    TrunkLost,
    call_roll,
)
from strategies.exchange import Exchange

TRUNK_LIVES = 3
"""How often a run starts its trunk before it gives up."""


def execute(grid: Grid, config: RunConfig) -> None:
    """Train as ``config`` says and leave a finished run folder.

    The attackers of the key ``attack`` follow the training.

    Whatever fails is written into the folder's ``run.json`` with its traceback, and raised.
    """
    config = with_name(config)
    run = open_run(config)
    log(INFO, "run folder: %s", run.path)
    try:
        _train(grid, config, run)
        _attack(config, run)
        run.set_status("finished")
        from reports.report import write_report  # draws, and that takes long to import

        log(INFO, "report: %s", write_report(run))
    except BaseException:
        run.set_status("failed", traceback.format_exc())
        raise


def _attack(config: RunConfig, run: RunFolder) -> None:
    names = attackers_of(config.attack)
    told = ""

    def watch(attacker: str, stage: str, done: int, total: int) -> None:
        nonlocal told
        run.write_progress(
            {
                "round": config.rounds,
                "rounds": config.rounds,
                "step": done,
                "steps": total,
                "phase": f"attack {attacker}: {stage}",
                "message": "",
            }
        )
        if (attacker + stage) != told:
            told = attacker + stage
            log(INFO, "attack %s: %s", attacker, stage)

    attack_run(run, names, options_of(config), gpus=config.trunk_gpus, watch=watch)


def with_name(config: RunConfig) -> RunConfig:
    """The configuration with an absolute ``runs-dir`` and a ``run-name``."""
    name = config.run_name or time.strftime("run-%Y%m%d-%H%M%S")
    return config.model_copy(
        update={"run_name": name, "runs_dir": str(Path(config.runs_dir).absolute())}
    )


def open_run(config: RunConfig) -> RunFolder:
    """The run's folder: a new one, or with ``resume`` the old one, cut back to its checkpoint.

    Raises
    ------
    ConfigError
        If a resumed run's configuration differs in a key that would change its numbers.
    reports.RunFolderError
        If the folder exists (or, with ``resume``, does not).
    """
    resolved = config.model_dump(by_alias=True)
    if not config.resume:
        return RunFolder.create(config.runs_dir, config.run_name, resolved)
    run = RunFolder.open(Path(config.runs_dir) / config.run_name)
    before = run.config()
    changed = [
        Problem(key, resolved[key], f"the run was started with {before.get(key)!r}")
        for key in keys()
        if key not in RESUME_KEYS and resolved[key] != before.get(key)
    ]
    if changed:
        raise ConfigError(changed)
    run.set_status("running")
    return run


@dataclass(frozen=True)
class _Start:
    """Where training starts: the state, and the trunk's weights and moments (None: its own)."""

    state: RunState
    weights: dict[str, Tensor] | None
    moments: dict[str, Tensor] | None


def _train(grid: Grid, config: RunConfig, run: RunFolder) -> None:
    roster = call_roll(grid, config)
    # In simulation Flower's backend has started Ray by the time a client answers.
    if not ray.is_initialized():
        ray.init(log_to_driver=False, include_dashboard=False)
    steps = steps_per_round(config, roster)
    run.add_facts(_facts(config, roster, steps))
    _warn_of_keys(config)
    first = _first_start(grid, config, roster)
    for life in range(1, TRUNK_LIVES + 1):
        start = _last_start(run) or first
        if config.resume or life > 1:
            run.truncate_after(start.state.round)
            log(INFO, "resuming after round %d", start.state.round)
        try:
            return _train_from(grid, config, run, roster, steps, start)
        except TrunkLost as error:
            if life == TRUNK_LIVES:
                raise
            log(WARNING, "%s\nstarting it again from round %d", error, start.state.round)
    raise AssertionError("unreachable")


def _train_from(
    grid: Grid, config: RunConfig, run: RunFolder, roster: Roster, steps: int, start: _Start
) -> None:
    schedule = SCHEDULES[config.schedule]
    trunk = RayTrunk(
        trunk_spec(config, schedule),
        name=f"trunk-{run.name}-{os.getpid()}-{time.monotonic_ns()}",
        gpus=config.trunk_gpus,
        weights=start.weights,
        timeout=config.start_timeout,
    )
    try:
        if start.weights is not None and start.moments is not None:
            trunk.load(start.weights, start.moments)
        run.add_facts({"trunk_device": trunk.device})
        log(INFO, "trunk on %s", trunk.device)
        observer = RunObserver(run, config, trunk, steps)
        strategy = schedule(config, roster, trunk, observer, steps=steps, state=start.state)
        strategy.start(grid, num_rounds=config.rounds, timeout=config.step_timeout)
    finally:
        trunk.close()


def steps_per_round(config: RunConfig, roster: Roster) -> int:
    """Steps of each client in a round; by default one pass over as many images as there are."""
    if config.steps_per_round:
        return config.steps_per_round
    per_step = sum(min(config.batch_size, member.train) for member in roster.members.values())
    return max(1, -(-roster.images("train") // per_step))


def trunk_spec(config: RunConfig, schedule: type[SplitStrategy]) -> TrunkSpec:
    """The trunk that a run's configuration asks for."""
    return TrunkSpec(
        model=ModelSpec.of(config),
        cut=config.cut,
        optimiser=OptimiserSpec(
            kind=config.optimizer,
            lr_start=config.lr_trunk,
            lr_end=config.lr_trunk_end,
            momentum=config.momentum,
            weight_decay=config.weight_decay,
        ),
        returns=config.return_,
        wire_dtype=config.wire_dtype,
        sharing=schedule.sharing,
        amp=config.trunk_amp,
        threads=config.trunk_threads,
    )


def _first_start(grid: Grid, config: RunConfig, roster: Roster) -> _Start:
    """The beginning. Under a column key a client, who has the key, provides the locked trunk."""
    if "column" not in config.permute:
        return _Start(RunState(), None, None)
    client = min(roster.members)
    request = Message(compose(config={"ask": "lock"}), roster.node(client), Action.LOCK.value)
    replies, failures = Exchange(grid, config.start_timeout).ask({client: request})
    if failures:
        raise RunFailed(str(failures[client]))
    return _Start(RunState(), weights_of(replies[client].message.content), None)


def _last_start(run: RunFolder) -> _Start | None:
    folder = run.latest_checkpoint()
    return _Start(*load_checkpoint(folder)) if folder is not None else None


def _facts(config: RunConfig, roster: Roster, steps: int) -> dict[str, object]:
    return {
        "clients": len(roster.members),
        "steps_per_round": steps,
        "images": {split: roster.images(split) for split in ("train", "validation", "test")},
        "images_per_client": {
            str(client): [member.train, member.validation, member.test]
            for client, member in roster.members.items()
        },
    }


def _warn_of_keys(config: RunConfig) -> None:
    if config.key_source == "seed" and config.permute != "none":
        log(
            WARNING,
            'key-source = "seed": a simulation, its keys can be derived from the seed; '
            'use "file" or "random" where secrecy matters',
        )
