# SPDX-License-Identifier: Apache-2.0
"""What Flower keeps of a client between messages: its state, its secret, and nothing else."""

from pathlib import Path

import pytest
import torch
from federation import Federation, federate, tiny_config
from flwr.app import ConfigRecord, Context, RecordDict

from clients.owner import Owner
from clients.records import load_state, load_totals, save_state, save_totals
from clients.secrets import client_secret
from clients.session import Session, Totals
from clients.state import PARTS, ClientState

STATE = {"edge", "tail", "edge-moments", "tail-moments", "counters", "secret"}


def context() -> Context:
    return Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config={})


def small(tmp_path: Path, **changes: object) -> Federation:
    quick = {"schedule": "parallel", "rounds": 1, "steps_per_round": 1, "batch_size": 2}
    return federate(tiny_config(tmp_path, **{**quick, **changes}), 2)


def test_a_state_is_read_back_exactly(tmp_path: Path) -> None:
    config = tiny_config(tmp_path, return_="all", optimizer="adamw")
    session = Session(Owner(config, 0, 2, client_secret(config, 0)), ClientState())
    session.begin_round(1)
    smashed = session.smash(1, 0, 2)
    session.absorb(1, 0, 2, session.finish(1, 0, 2, smashed, 0.0).hidden_gradient, 0.0)
    held = context()
    save_state(held, session)
    loaded = load_state(held)
    assert (loaded.begun, loaded.finished) == (1, 0)
    for part in PARTS:
        saved = session.state().tensors[part]
        assert loaded.tensors[part].keys() == saved.keys()
        for name, tensor in saved.items():
            assert torch.equal(loaded.tensors[part][name], tensor)
            assert loaded.tensors[part][name].dtype == tensor.dtype


def test_no_state_is_a_fresh_one_and_totals_survive() -> None:
    held = context()
    assert load_state(held) == ClientState()
    totals = Totals(3, 1.5, [1, 2], [0, 1], [2, 0])
    save_totals(held, totals)
    assert load_totals(held) == totals
    save_totals(held, Totals())
    assert load_totals(held) == Totals()


def test_a_context_holds_state_counters_and_secret_only(tmp_path: Path) -> None:
    run = small(tmp_path, permute="row+column", defences="gn:0.1").train()
    state = run.grid.context(1).state
    assert set(state) == STATE | {"totals"}
    assert dict(state.config_records["counters"]) == {"finished": 1, "begun": 1}
    assert set(state.config_records["secret"]) == {"hex"}
    assert set(state.array_records) == set(PARTS)
    session = Session(Owner(run.config, 1, 2, client_secret(run.config, 1)), ClientState())
    assert set(state.array_records["edge"]) == set(session.edge.state_dict())
    assert set(state.array_records["tail"]) == set(session.tail.state_dict())
    # Between evaluations the counts are empty.
    assert state.config_records["totals"]["images"] == 0
    assert state.config_records["totals"]["positives"] == []


def test_in_the_midst_of_a_round_it_holds_no_more(tmp_path: Path) -> None:
    run = small(tmp_path, evaluate_every=0)
    seen: list[set[str]] = []
    run.grid.sabotage = lambda client, message: seen.append(set(run.grid.context(client).state))  # type: ignore[func-returns-value]
    run.train()
    # describe has kept the secret; smash the state; evaluations their counts.
    assert seen[0] == {"secret"}
    assert [one for one in seen if not one <= STATE | {"totals"}] == []
    assert STATE in seen


def test_a_random_secret_is_kept_in_the_context(tmp_path: Path) -> None:
    run = small(tmp_path, permute="row", key_source="random")
    before = {client: run.grid.context(client).state["secret"] for client in (0, 1)}
    run.train()
    for client in (0, 1):
        held = run.grid.context(client).state.config_records["secret"]
        assert isinstance(before[client], ConfigRecord)
        assert held["hex"] == before[client]["hex"]
        assert held["hex"] != client_secret(run.config, client).hex()
    assert before[0] != before[1]
    for path in tmp_path.rglob("*.*"):
        for told in before.values():
            text = str(told["hex"])
            assert text.encode() not in path.read_bytes()
            assert bytes.fromhex(text) not in path.read_bytes()


def test_nothing_but_state_files_is_on_the_clients_disk(tmp_path: Path) -> None:
    run = small(tmp_path, permute="row").train()
    secret = client_secret(run.config, 0)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.relative_to(tmp_path / "client-state").as_posix() for path in files} == {
        f"test/client-00{client}/round-000001.safetensors" for client in (0, 1)
    }
    for path in files:
        content = path.read_bytes()
        assert secret.raw not in content
        assert secret.hex().encode() not in content


@pytest.mark.parametrize("key", ["data", "cache-dir", "state-dir"])
def test_a_machines_own_keys_rule_over_the_runs(tmp_path: Path, key: str) -> None:
    from clients.app import _owner

    run = small(tmp_path)
    held = run.grid.context(0)
    own = {"data": "synthetic:60"}.get(key, str(tmp_path / "own"))
    held.node_config[key] = own
    config = _owner(held).config.model_dump(by_alias=True)
    assert config.pop(key) == own
    assert config == {k: v for k, v in run.config.model_dump(by_alias=True).items() if k != key}
