# SPDX-License-Identifier: Apache-2.0
"""Who meets the trunk when: groups and order of each schedule, and whom a round samples."""

from pathlib import Path

import pytest
from federation import LocalTrunk, Witness, federate, tiny_config

from config import ConfigError, parse_run_config
from server_app.checks import RULES
from strategies import SCHEDULES, Member, Roster, RunState, SplitStrategy, TooFewClients


def roster(clients: int) -> Roster:
    return Roster({c: Member(c, 900 - 7 * c, 10, 3, 2) for c in range(clients)})


def make(tmp_path: Path, schedule: str, **changes: object) -> SplitStrategy:
    config = tiny_config(tmp_path, schedule=schedule, **changes)
    trunk = LocalTrunk(None)  # type: ignore[arg-type]
    return SCHEDULES[schedule](config, roster(5), trunk, Witness(), steps=1, state=RunState())


def test_groups_by_schedule(tmp_path: Path) -> None:
    who = (0, 2, 3)
    assert make(tmp_path, "sequential").groups(4, who) == [(0,), (2,), (3,)]
    for schedule in ("parallel", "splitfed-v1"):
        assert make(tmp_path, schedule).groups(4, who) == [who]


def test_splitfed_v2_draws_an_order_for_each_round_from_the_seed(tmp_path: Path) -> None:
    who = (0, 1, 2, 4)
    strategy, again = make(tmp_path, "splitfed-v2"), make(tmp_path, "splitfed-v2")
    orders = [strategy.groups(round, who) for round in range(1, 13)]
    assert all(sorted(order) == [(client,) for client in who] for order in orders)
    assert len({tuple(order) for order in orders}) > 6
    assert {order[0] for order in orders} == {(client,) for client in who}
    assert orders == [again.groups(round, who) for round in range(1, 13)]
    other = make(tmp_path, "splitfed-v2", seed=1)
    assert orders != [other.groups(round, who) for round in range(1, 13)]


def test_only_splitfed_v1_has_trunks_of_their_own() -> None:
    sharing = {name: schedule.sharing for name, schedule in SCHEDULES.items()}
    assert sharing == {
        "sequential": "shared", "parallel": "shared", "splitfed-v1": "own", "splitfed-v2": "shared",
    }  # fmt: skip


@pytest.mark.parametrize("schedule", sorted(SCHEDULES))
def test_clients_train_in_the_order_of_their_groups(tmp_path: Path, schedule: str) -> None:
    config = tiny_config(tmp_path, schedule=schedule, batch_size=2, rounds=2)
    run = federate(config, 3).train()
    opened = [
        (int(content.config_records["config"]["round"]), client)  # type: ignore[arg-type]
        for client, leg, content in run.grid.traffic
        if leg.startswith("down train.")
    ]
    order = []
    for round in (1, 2):
        for group in run.strategy.groups(round, (0, 1, 2)):
            # An opening, then two steps of finish and absorb; side by side within a group.
            order += [(round, client) for client in (*group,) * 5]
    assert opened == order


@pytest.mark.parametrize("schedule", ["sequential", "splitfed-v1", "splitfed-v2"])
def test_with_one_client_all_schedules_are_the_same(tmp_path: Path, schedule: str) -> None:
    expected = federate(tiny_config(tmp_path / "a", schedule="parallel"), 1).train().weights()
    weights = federate(tiny_config(tmp_path / "b", schedule=schedule), 1).train().weights()
    # One group or another, the numbers are the same bit by bit.
    assert all(bool((weights[name] == expected[name]).all()) for name in expected)


def test_parallel_over_ray_is_refused_and_what_serves_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_run_config({"schedule": "parallel", "transport": "ray"}, rules=RULES)
    (problem,) = caught.value.problems
    assert problem.key == "transport"
    assert problem.message == (
        'schedule = "parallel" needs transport = "message" '
        "(ray serves sequential, splitfed-v1, splitfed-v2)"
    )


def test_an_unknown_schedule_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="allowed are parallel, sequential, splitfed-v1, split"):
        parse_run_config({"schedule": "serial"}, rules=RULES)


@pytest.mark.parametrize("schedule", ["sequential", "splitfed-v1", "splitfed-v2"])
def test_the_others_serve_both_transports(schedule: str) -> None:
    for transport in ("message", "ray"):
        parse_run_config({"schedule": schedule, "transport": transport}, rules=RULES)


# -- sampling ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fraction", "clients", "minimum", "expected"),
    [
        (1.0, 5, 1, 5),
        (0.5, 5, 1, 3),
        (0.01, 5, 1, 1),
        (0.2, 5, 4, 4),
        # In binary 0.07 * 100 is a little more than 7.
        (0.07, 100, 1, 7),
        (0.55, 100, 1, 55),
    ],
)
def test_a_round_samples_its_share(
    tmp_path: Path, fraction: float, clients: int, minimum: int, expected: int
) -> None:
    config = tiny_config(tmp_path, client_fraction=fraction, min_clients=minimum)
    for round in (1, 2, 3):
        sampled = roster(clients).sample(config, round, set())
        assert len(sampled) == expected
        assert list(sampled) == sorted(set(sampled))
        assert set(sampled) <= set(range(clients))


def test_sampling_follows_seed_and_round_and_reaches_all(tmp_path: Path) -> None:
    config, other = (tiny_config(tmp_path, client_fraction=0.4, seed=seed) for seed in (0, 1))
    sampled = [roster(6).sample(config, round, set()) for round in range(1, 13)]
    assert sampled == [roster(6).sample(config, round, set()) for round in range(1, 13)]
    assert sampled != [roster(6).sample(other, round, set()) for round in range(1, 13)]
    assert {client for one in sampled for client in one} == set(range(6))


def test_busy_clients_are_replaced_by_free_ones(tmp_path: Path) -> None:
    config = tiny_config(tmp_path, client_fraction=0.5, min_clients=2)
    everyone = roster(6).sample(config, 1, set())
    busy = {everyone[0]}
    sampled = roster(6).sample(config, 1, busy)
    assert len(sampled) == 3
    assert not busy & set(sampled)
    assert set(everyone) - busy <= set(sampled)
    with pytest.raises(TooFewClients, match="round 1: 1 clients are free, min-clients = 2"):
        roster(6).sample(config, 1, set(range(5)))


def test_a_sampled_round_trains_only_the_sampled(tmp_path: Path) -> None:
    config = tiny_config(
        tmp_path, schedule="parallel", client_fraction=0.5, rounds=3, steps_per_round=1,
        batch_size=2,
    )  # fmt: skip
    run = federate(config, 4).train()
    for round in (1, 2, 3):
        expected = run.strategy.roster.sample(config, round, set())
        trained = {row["client"] for row in run.witness.rounds[round - 1].ledger
                   if (row["leg"], row["phase"]) == ("smashed", "train")}  # fmt: skip
        assert trained == set(expected)
    evaluated = {c for c, leg, _ in run.grid.traffic if leg == "down evaluate.smash"}
    assert evaluated == {0, 1, 2, 3}
