# SPDX-License-Identifier: Apache-2.0
"""A run that was stopped and goes on in new processes equals one that never stopped, bit by bit."""

import copy
from pathlib import Path

import pytest
import torch
from federation import Federation, federate, tiny_config
from torch import Tensor

from clients.state import PARTS, StateFolder
from strategies import RoundResult, RunState

CLIENTS, ROUNDS, KEPT = 2, 3, 1
State = dict[str, dict[str, Tensor]]


def client_states(run: Federation) -> dict[str, State]:
    """Weights and moments of all clients, as their contexts and their disks hold them."""
    states = {}
    for client in range(CLIENTS):
        records = run.grid.context(client).state.array_records
        states[f"context {client}"] = {
            part: dict(records[part].to_torch_state_dict()) for part in PARTS
        }
        folder = Path(run.config.state_dir) / "test" / f"client-{client:03d}"
        states[f"disk {client}"] = StateFolder(folder).load(ROUNDS).tensors
    return states


def assert_equal(one: dict[str, Tensor], other: dict[str, Tensor], what: str) -> None:
    assert one.keys() == other.keys(), what
    for name, tensor in one.items():
        assert torch.equal(tensor, other[name]), f"{what}: {name}"


@pytest.mark.parametrize(
    ("optimizer", "mode", "schedule"),
    [
        ("sgd", "averaged", "parallel"),
        ("sgd", "private", "parallel"),
        ("adamw", "averaged", "splitfed-v1"),
        ("adamw", "private", "parallel"),
    ],
)
def test_resumed_equals_never_stopped(
    tmp_path: Path, optimizer: str, mode: str, schedule: str
) -> None:
    rates = {"lr_client": 0.02, "lr_trunk": 0.02} if optimizer == "adamw" else {}
    changes = {
        "optimizer": optimizer, "client_weights": mode, "schedule": schedule, "rounds": ROUNDS,
        "batch_size": 3, "evaluate_batch_size": 64, "permute": "row", "defences": "gn:0.1",
        "momentum": 0.9, "cut": 1, **rates,
    }  # fmt: skip
    straight = federate(tiny_config(tmp_path / "straight", **changes), CLIENTS).train()

    # Stopped after round 2, when the server's last checkpoint was of round 1.
    config = tiny_config(tmp_path / "stopped", **changes)
    stopped = federate(config, CLIENTS)
    kept: dict[int, tuple[RunState, tuple[dict[str, Tensor], dict[str, Tensor]]]] = {}

    def checkpoint(result: RoundResult) -> None:
        kept[result.state.round] = copy.deepcopy((result.state, stopped.trunk.step.state()))

    stopped.witness.round = checkpoint  # type: ignore[method-assign]
    stopped.strategy.start(stopped.grid, num_rounds=2)
    state, (weights, moments) = kept[KEPT]
    assert state.finished == dict.fromkeys(range(CLIENTS), KEPT)

    resumed = federate(config, CLIENTS, state=state)
    resumed.trunk.step.load(weights, moments)
    resumed.train()
    assert [result.state.round for result in resumed.witness.rounds] == [2, 3]

    for part, expected in zip(("weights", "moments"), straight.trunk.step.state(), strict=True):
        index = {"weights": 0, "moments": 1}[part]
        assert expected
        assert_equal(resumed.trunk.step.state()[index], expected, f"trunk {part}")
    assert_equal(resumed.strategy.state.weights, straight.strategy.state.weights, "averages")
    assert bool(resumed.strategy.state.weights) == (mode == "averaged")
    for who, expected_state in client_states(straight).items():
        for name, tensors in client_states(resumed)[who].items():
            assert_equal(tensors, expected_state[name], f"{who} {name}")
    for split, metric in (("train", "loss"), ("test", "accuracy"), ("test", "loss")):
        values = [run.witness.value(metric, split=split) for run in (resumed, straight)]
        assert values[0] == values[1]


def test_a_lost_state_folder_is_told_of(tmp_path: Path) -> None:
    config = tiny_config(tmp_path, schedule="parallel", batch_size=2, min_clients=2)
    first = federate(config, CLIENTS).train()
    for file in (tmp_path / "client-state").rglob("client-001/*"):
        file.unlink()
    state = RunState(1, first.strategy.state.weights, {0: 1, 1: 1})
    resumed = federate(config, CLIENTS, state=state)
    with pytest.raises(RuntimeError, match=r"StateError: state of round 1 cannot be read from"):
        resumed.train()
