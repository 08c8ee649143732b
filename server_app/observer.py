# SPDX-License-Identifier: Apache-2.0
"""Follows a run on the server: tables, checkpoints, progress and the readable log."""

import time
from logging import INFO, WARNING

from flwr.common.logger import log
from safetensors.torch import save_file

from config import RunConfig
from reports import RunFolder
from server_app.checkpoint import save_checkpoint
from server_app.trunk_actor import Traffic
from server_app.trunk_handle import RayTrunk
from split import decode
from strategies import RoundResult

KEPT_CHECKPOINTS = 2


class RunObserver:
    """Writes what a strategy reports into the run folder.

    Parameters
    ----------
    run : RunFolder
    config : RunConfig
    trunk : RayTrunk
    steps : int
        Steps of a round that are announced: all groups together.
    """

    def __init__(self, run: RunFolder, config: RunConfig, trunk: RayTrunk, steps: int) -> None:
        self._run, self._config, self._trunk, self._steps = run, config, trunk, steps
        self._told = 0.0
        self._speed: float | None = None

    def step(self, round: int, step: int, phase: str) -> None:
        """Progress, at most a few times a second."""
        if time.monotonic() - self._told > 0.3:
            self._told = time.monotonic()
            self._progress(round, step, phase)

    def warn(self, text: str) -> None:
        """A client failed: with its traceback, in the log and in the run folder."""
        log(WARNING, "%s", text)
        kept = self._run.facts().get("warnings", [])
        self._run.add_facts({"warnings": [*kept, text][-50:]})

    def round(self, result: RoundResult) -> None:
        """Tables first, the checkpoint last: what a checkpoint names is in the tables."""
        round = result.state.round
        self._run.append_metrics(result.metrics, round=round)
        self._run.append_ledger(result.ledger, round=round)
        self._save_traffic(self._trunk.take_traffic())
        save_checkpoint(self._run, result.state, self._trunk.state(), keep=KEPT_CHECKPOINTS)
        told = summarise(result)
        self._speed = next(
            float(str(row["value"]))
            for row in result.metrics
            if row["metric"] == "images_per_second"
        )
        self._progress(round, self._steps, "train", told)
        log(INFO, "round %d/%d: %s", round, self._config.rounds, told)

    def _progress(self, round: int, step: int, phase: str, message: str = "") -> None:
        self._run.write_progress(
            {
                "round": round,
                "rounds": self._config.rounds,
                "step": step,
                "steps": self._steps,
                "phase": phase,
                "images_per_second": self._speed,
                "message": message,
            }
        )

    def _save_traffic(self, traffic: Traffic) -> None:
        for round, step, client, wire in traffic:
            name = f"round-{round:04d}-step-{step:04d}-client-{client:03d}.safetensors"
            self._run.traffic_path.mkdir(exist_ok=True)
            save_file(
                {"smashed": decode(wire).contiguous()},
                self._run.traffic_path / name,
                metadata={"wire": str(wire.payload.dtype)},
            )


def summarise(result: RoundResult) -> str:
    """A round in a line: loss, speed, and utility beside its floor where it was measured."""
    means = {
        (str(row["split"]), str(row["metric"])): float(str(row["value"]))
        for row in result.metrics
        if row["client"] == -1 and row["attribute"] in ("mean", "")
    }
    parts = [
        f"loss {means['train', 'loss']:.4f}",
        f"{means['train', 'images_per_second']:.0f} images/s",
    ]
    parts += [
        f"{split} accuracy {means[split, 'accuracy']:.4f} (floor {means[split, 'floor']:.4f})"
        for split in ("validation", "test")
        if (split, "accuracy") in means
    ]
    return ", ".join(parts)
