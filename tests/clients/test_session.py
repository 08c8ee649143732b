# SPDX-License-Identifier: Apache-2.0
"""A client at work: it goes on from its state as if it had never stopped."""

import copy
from pathlib import Path

import pytest
import torch
from federation import tiny_config

from clients.owner import Owner
from clients.secrets import client_secret
from clients.session import Session, Totals
from clients.state import PARTS, ClientState
from config import RunConfig
from split import build_split
from split.model import ModelSpec


def make_owner(config: RunConfig) -> Owner:
    return Owner(config, 0, 2, client_secret(config, 0))


def step(session: Session, number: int) -> list[torch.Tensor]:
    """One step against an identity in the trunk's place."""
    smashed = session.smash(1, number, 4)
    result = session.finish(1, number, 4, smashed, number / 4)
    session.absorb(1, number, 4, result.hidden_gradient, number / 4)
    return [smashed, result.hidden_gradient]


@pytest.mark.parametrize(
    "changes",
    [
        {"momentum": 0.9, "cut": 1},
        {"momentum": 0.0},
        {"optimizer": "adamw", "lr_client": 0.01, "defences": "gn:0.3"},
    ],
    ids=["sgd", "plain-sgd", "adamw"],
)
def test_a_session_for_each_move_equals_one_for_all(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    config = tiny_config(tmp_path, permute="row", return_="all", **changes)
    straight = Session(make_owner(config), ClientState())
    state, owner = ClientState(), make_owner(config)
    for number in range(3):
        sent = step(straight, number)
        first = Session(owner, state)
        smashed = first.smash(1, number, 4)
        second = Session(owner, copy.deepcopy(first.state()))
        result = second.finish(1, number, 4, smashed, number / 4)
        third = Session(make_owner(config), copy.deepcopy(second.state()))
        third.absorb(1, number, 4, result.hidden_gradient, number / 4)
        state = copy.deepcopy(third.state())
        assert torch.equal(sent[0], smashed)
        assert torch.equal(sent[1], result.hidden_gradient)
    expected = straight.state()
    for part in PARTS:
        assert expected.tensors[part].keys() == state.tensors[part].keys()
        for name, tensor in expected.tensors[part].items():
            assert torch.equal(tensor, state.tensors[part][name]), name


def test_a_fresh_client_has_the_models_first_weights(tmp_path: Path) -> None:
    config = tiny_config(tmp_path, cut=1)
    weights = Session(make_owner(config), ClientState()).weights()
    model = build_split(ModelSpec.of(config), 1)
    expected = {
        **{f"edge/{name}": tensor for name, tensor in model.edge.state_dict().items()},
        **{f"tail/{name}": tensor for name, tensor in model.tail.state_dict().items()},
    }
    assert weights.keys() == expected.keys()
    assert all(torch.equal(weights[name], expected[name]) for name in weights)


def test_training_does_not_touch_the_next_clients_first_weights(tmp_path: Path) -> None:
    config = tiny_config(tmp_path, return_="all")
    before = Session(make_owner(config), ClientState()).weights()
    session = Session(make_owner(config), ClientState())
    step(session, 0)
    assert not torch.equal(session.weights()["tail/head.weight"], before["tail/head.weight"])
    after = Session(make_owner(config), ClientState()).weights()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_replaced_weights_are_taken_and_moments_stay(tmp_path: Path) -> None:
    config = tiny_config(tmp_path, return_="all", momentum=0.9)
    session = Session(make_owner(config), ClientState())
    step(session, 0)
    moments = copy.deepcopy(session.state().tensors["tail-moments"])
    assert moments
    averaged = {name: torch.full_like(t, 0.25) for name, t in session.weights().items()}
    session.replace_weights(averaged)
    assert all(torch.equal(t, averaged[n]) for n, t in session.weights().items())
    kept = session.state().tensors["tail-moments"]
    assert all(torch.equal(kept[name], moments[name]) for name in moments)


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    session = Session(make_owner(tiny_config(tmp_path)), ClientState())
    weights = session.weights()
    del weights["tail/head.bias"]
    with pytest.raises(RuntimeError, match=r"head\.bias"):
        session.replace_weights(weights)


def test_a_frozen_client_computes_but_never_changes(tmp_path: Path) -> None:
    config = tiny_config(tmp_path, return_="all", client_weights="frozen")
    session = Session(make_owner(config), ClientState())
    before = session.weights()
    result = session.finish(1, 0, 4, session.smash(1, 0, 4), 0.0)
    session.absorb(1, 0, 4, None, 0.0)
    assert result.hidden_gradient.abs().max() > 0
    assert all(torch.equal(t, before[name]) for name, t in session.weights().items())
    assert session.state().tensors["tail-moments"] == {}


def test_totals_by_hand() -> None:
    totals = Totals()
    totals.add(torch.tensor([[2.0, -1.0], [-3.0, 0.0]]), torch.tensor([[1.0, 1.0], [0.0, 0.0]]))
    totals.add(torch.tensor([[1.0, 1.0]]), torch.tensor([[0.0, 1.0]]))
    assert totals.images == 3
    assert totals.positives == [1, 2]
    assert totals.true_positives == [1, 1]
    # A logit of 0 is a negative prediction.
    assert totals.true_negatives == [1, 1]

    def cross_entropy(logit: float, label: float) -> float:
        z = torch.sigmoid(torch.tensor(logit, dtype=torch.float64))
        return float(-(label * z.log() + (1 - label) * (1 - z).log()))

    first = [(2.0, 1.0), (-1.0, 1.0), (-3.0, 0.0), (0.0, 0.0)]
    second = [(1.0, 0.0), (1.0, 1.0)]
    expected = 2 * sum(cross_entropy(*pair) for pair in first) / 4
    expected += sum(cross_entropy(*pair) for pair in second) / 2
    assert totals.loss == pytest.approx(expected, rel=1e-6)
