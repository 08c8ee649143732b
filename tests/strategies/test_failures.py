# SPDX-License-Identifier: Apache-2.0
"""Clients that raise, are late, stay silent or send nonsense: loud, dropped, and taken back."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from federation import Federation, federate, tiny_config
from flwr.app import Message
from torch import Tensor
from trouble import TroubledGrid

from clients.owner import Owner
from clients.protocol import config_of, wire_of
from clients.secrets import client_secret
from clients.session import Session
from clients.state import StateFolder
from split import Finished, decode
from strategies import Diverged, RoundResult, TooFewClients

MOVES = {
    "smash": ("train.smash", 0),
    "finish": ("train.finish", 1),
    "absorb": ("train.absorb", 0),
    "last-absorb": ("train.absorb", 1),
}

Sabotage = Callable[[int, Message], str | None]


def fail(move: str, harm: str, *, round: int, client: int = 1) -> Sabotage:
    """One client comes to harm in one move of one round."""
    action, step = MOVES[move]

    def sabotage(who: int, message: Message) -> str | None:
        if message.metadata.message_type != action or who != client:
            return None
        now = config_of(message.content)
        return harm if (now["round"], now["step"]) == (round, step) else None

    return sabotage


def run(tmp_path: Path, sabotage: Sabotage | None = None, **changes: object) -> Federation:
    """A run of three clients, whose late replies come between rounds."""
    keys = {
        "schedule": "parallel", "client_weights": "private", "rounds": 3, "batch_size": 2,
        "evaluate_batch_size": 64, "permute": "row", "momentum": 0.9, **changes,
    }  # fmt: skip
    started = federate(tiny_config(tmp_path, **keys), 3, sabotage=sabotage)
    grid, rounds = started.grid, started.witness.rounds
    assert isinstance(grid, TroubledGrid)

    def round_over(result: RoundResult) -> None:
        grid.release()
        rounds.append(result)

    started.witness.round = round_over  # type: ignore[method-assign]
    return started


def requests(run: Federation, client: int) -> list[tuple[int, str]]:
    """Round and action of all training requests to a client."""
    return [
        (int(now["round"]), leg.removeprefix("down train."))
        for who, leg, content in run.grid.traffic
        if who == client
        and leg.startswith("down train.")
        and (now := content.config_records.get("config"))
    ]


@pytest.mark.usefixtures("troubled")
@pytest.mark.parametrize("harm", ["dead", "late"])
@pytest.mark.parametrize("move", MOVES)
def test_a_failed_client_is_dropped_and_taken_back(tmp_path: Path, move: str, harm: str) -> None:
    trained = run(tmp_path, fail(move, harm, round=2)).train()
    (warning,) = trained.witness.warnings
    assert f"round 2: client 1 failed in {MOVES[move][0]}: " in warning
    assert ("Traceback" in warning and "KeyError" in warning) == (harm == "dead")
    assert ("no reply within step-timeout = 5 s" in warning) == (harm == "late")
    assert "client 1 is out of this round" in warning

    finished = [result.state.finished for result in trained.witness.rounds]
    assert finished == [{0: 1, 1: 1, 2: 1}, {0: 2, 1: 1, 2: 2}, {0: 3, 1: 3, 2: 3}]
    for client in (0, 2):
        assert requests(trained, client) == [
            (round, action)
            for round in (1, 2, 3)
            for action in ("smash", "finish", "absorb", "finish", "absorb")
        ]
    assert isinstance(trained.grid, TroubledGrid)
    assert trained.grid.doubled == []
    assert trained.grid.owed == {}

    # In round 3 it goes on from round 1, whatever it did in round 2.
    opening, smashed = (
        [content for client, leg, content in trained.grid.traffic
         if (client, leg) == (1, f"{way} train.smash")][-1]
        for way in ("down", "up")
    )  # fmt: skip
    assert config_of(opening)["restore"] == 1
    path = Path(trained.config.state_dir) / "test" / "client-001"
    owner = Owner(trained.config, 1, 3, client_secret(trained.config, 1))
    expected = Session(owner, StateFolder(path).load(1)).smash(3, 0, 2)
    assert torch.equal(decode(wire_of(smashed)), expected)
    assert {file.stem for file in path.iterdir()} == {"round-000001", "round-000003"}


@pytest.mark.usefixtures("troubled")
def test_a_client_that_stays_silent_is_asked_no_more(tmp_path: Path) -> None:
    trained = run(tmp_path, fail("finish", "silent", round=1)).train()
    assert requests(trained, 1)[-1] == (1, "finish")
    assert trained.witness.rounds[-1].state.finished == {0: 3, 2: 3}
    assert isinstance(trained.grid, TroubledGrid)
    assert trained.grid.doubled == []
    evaluated = {c for c, leg, _ in trained.grid.traffic if leg.startswith("down evaluate")}
    assert evaluated == {0, 2}


@pytest.mark.usefixtures("troubled")
def test_a_failure_in_evaluation_costs_the_clients_counts_only(tmp_path: Path) -> None:
    def sabotage(client: int, message: Message) -> str | None:
        return "dead" if (client, message.metadata.message_type) == (1, "evaluate.finish") else None

    trained = run(tmp_path, sabotage, rounds=1).train()
    assert len(trained.witness.warnings) == 2  # validation and test
    assert "Traceback" in trained.witness.warnings[0]
    rows = [row for row in trained.witness.rounds[0].metrics if row["split"] == "test"]
    assert {row["client"] for row in rows} == {-1, 0, 2}
    held = sum(trained.strategy.roster.images("test", client) for client in (0, 2))
    assert {row["count"] for row in rows if row["client"] == -1} == {held}


@pytest.mark.usefixtures("troubled")
def test_too_few_clients_end_the_run_with_what_happened(tmp_path: Path) -> None:
    started = run(tmp_path, fail("absorb", "dead", round=1), min_clients=3)
    with pytest.raises(TooFewClients, match="2 of 3 clients are left, min-clients = 3") as caught:
        started.train()
    assert "client 1 failed in train.absorb" in str(caught.value)
    assert "Traceback" in str(caught.value)
    assert started.witness.rounds == []


@pytest.mark.usefixtures("troubled")
def test_a_silent_client_can_leave_too_few_for_the_next_round(tmp_path: Path) -> None:
    def sabotage(client: int, message: Message) -> str | None:
        silent = (1, "evaluate.smash")
        return "silent" if (client, message.metadata.message_type) == silent else None

    with pytest.raises(TooFewClients, match="round 2: 2 clients are free, min-clients = 3"):
        run(tmp_path, sabotage, min_clients=3, evaluate_every=1).train()


def spoil(
    monkeypatch: pytest.MonkeyPatch,
    move: str,
    change: Callable[..., object],
    *,
    at: tuple[int, int],
) -> None:
    """Change what client 1 computes in one step."""
    original = getattr(Session, move)

    def spoilt(self: Session, round: int, step: int, *rest: object) -> object:
        result = original(self, round, step, *rest)
        return change(result) if self.owner.client == 1 and (round, step) == at else result

    monkeypatch.setattr(Session, move, spoilt)


@pytest.mark.usefixtures("troubled")
@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loss: float
) -> None:
    spoil(monkeypatch, "finish", lambda result: replace(result, loss=loss), at=(2, 1))
    with pytest.raises(Diverged, match=f"loss is {loss} in round 2, step 1, client 1"):
        run(tmp_path).train()


@pytest.mark.usefixtures("troubled")
@pytest.mark.parametrize("what", ["smashed data", "gradient"])
def test_the_trunk_refuses_what_is_not_finite_and_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    def bad_smashed(smashed: Tensor) -> Tensor:
        return smashed * float("nan")

    def bad_gradient(result: Finished) -> Finished:
        return replace(result, hidden_gradient=result.hidden_gradient * float("inf"))

    if what == "gradient":
        spoil(monkeypatch, "finish", bad_gradient, at=(2, 1))
    else:
        spoil(monkeypatch, "smash", bad_smashed, at=(2, 1))
    trained = run(tmp_path).train()
    (warning,) = trained.witness.warnings
    assert f"client 1: {what} hold" in warning
    assert "the trunk's check" in warning
    finished = [result.state.finished for result in trained.witness.rounds]
    assert finished == [{0: 1, 1: 1, 2: 1}, {0: 2, 1: 1, 2: 2}, {0: 3, 1: 3, 2: 3}]
    assert all(bool(t.isfinite().all()) for t in trained.trunk.step.state()[0].values())


@pytest.mark.usefixtures("troubled")
@pytest.mark.parametrize("schedule", ["sequential", "splitfed-v1", "splitfed-v2"])
def test_every_schedule_goes_on_without_a_dead_client(tmp_path: Path, schedule: str) -> None:
    sabotage = fail("absorb", "dead", round=1)
    trained = run(tmp_path, sabotage, schedule=schedule, rounds=2, steps_per_round=2).train()
    assert len(trained.witness.warnings) == 1
    finished = [result.state.finished for result in trained.witness.rounds]
    assert finished == [{0: 1, 2: 1}, {0: 2, 1: 2, 2: 2}]


@pytest.mark.usefixtures("troubled")
def test_averaged_weights_are_those_of_the_clients_left(tmp_path: Path) -> None:
    sabotage = fail("last-absorb", "late", round=1)
    trained = run(tmp_path, sabotage, rounds=1, client_weights="averaged").train()
    states = [
        StateFolder(Path(trained.config.state_dir) / "test" / f"client-00{c}").load(1).tensors
        for c in (0, 2)
    ]
    mean = (states[0]["tail"]["head.weight"] + states[1]["tail"]["head.weight"]) / 2
    torch.testing.assert_close(trained.strategy.state.weights["tail/head.weight"], mean)
