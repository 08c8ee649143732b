# SPDX-License-Identifier: Apache-2.0
"""What becomes of edge and tail: averaged, private, or frozen."""

from pathlib import Path

import pytest
import torch
from federation import Federation, federate, tiny_config
from torch import Tensor
from torch.nn import functional

from clients.owner import Moment, Owner
from clients.secrets import client_secret
from clients.state import PARTS
from server_app.run import trunk_spec
from split import ModelSpec, build_split
from split.optimise import build_optimiser, step_at
from strategies import SCHEDULES


def run(tmp_path: Path, mode: str, clients: int = 2, **changes: object) -> Federation:
    keys = {"schedule": "parallel", "batch_size": 3, "evaluate_batch_size": 64, **changes}
    return federate(tiny_config(tmp_path, client_weights=mode, **keys), clients).train()


def part(run: Federation, client: int, name: str) -> dict[str, Tensor]:
    """The weights of a client's edge or tail, as its context holds them."""
    record = run.grid.context(client).state.array_records[name]
    return dict(record.to_torch_state_dict())


def equal(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[n], other[n]) for n in one)


def test_frozen_weights_never_change_and_no_gradient_comes_down(tmp_path: Path) -> None:
    trained = run(tmp_path, "frozen", cut=1, momentum=0.9)
    first = build_split(ModelSpec.of(trained.config), 1)
    for client in (0, 1):
        assert equal(part(trained, client, "edge"), first.edge.state_dict())
        assert equal(part(trained, client, "tail"), first.tail.state_dict())
        assert not part(trained, client, "edge-moments")
        assert not part(trained, client, "tail-moments")
    absorbs = [c for _, leg, c in trained.grid.traffic if leg == "down train.absorb"]
    assert len(absorbs) == 2 * 2 * 2
    assert not any(content.array_records for content in absorbs)
    assert not any("weights" in content for _, _, content in trained.grid.traffic)
    assert not equal(trained.trunk.step.state()[0], first.trunk.state_dict())


def test_a_frozen_run_equals_one_model_of_which_only_the_trunk_learns(tmp_path: Path) -> None:
    trained = run(tmp_path, "frozen", clients=1, cut=1, momentum=0.9, permute="row")
    config = trained.config
    model = build_split(ModelSpec.of(config), 1)
    spec = trunk_spec(config, SCHEDULES[config.schedule]).optimiser
    optimiser = build_optimiser(spec, model.trunk.parameters())
    owner = Owner(config, 0, 1, client_secret(config, 0))
    for round in (1, 2):
        for step in range(2):
            moment = Moment(purpose="train", round=round, step=step)
            batch = owner.training_batch(moment, 2)
            logits = model.forward(batch.images)
            functional.binary_cross_entropy_with_logits(logits, batch.labels).backward()
            step_at(optimiser, spec, (round - 1 + step / 2) / 2)
    torch.testing.assert_close(
        trained.trunk.step.state()[0], dict(model.trunk.state_dict()), rtol=1e-4, atol=1e-6
    )


def test_private_weights_are_in_no_message_and_differ(tmp_path: Path) -> None:
    trained = run(tmp_path, "private", cut=1)
    assert not any("weights" in content for _, _, content in trained.grid.traffic)
    names = {n for _, _, c in trained.grid.traffic for r in c.array_records.values() for n in r}
    assert names == {"payload"}
    assert trained.strategy.state.weights == {}
    for name in ("edge", "tail"):
        assert not equal(part(trained, 0, name), part(trained, 1, name))


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_one_client_alone_is_as_well_private_as_averaged(tmp_path: Path, optimizer: str) -> None:
    changes = {"clients": 1, "optimizer": optimizer, "cut": 1, "lr_client": 0.01}
    changes |= {"lr_trunk": 0.01}
    private = run(tmp_path / "private", "private", **changes)  # type: ignore[arg-type]
    averaged = run(tmp_path / "averaged", "averaged", **changes)  # type: ignore[arg-type]
    for name in PARTS:
        assert part(private, 0, name)
        assert equal(part(private, 0, name), part(averaged, 0, name)), name
    assert equal(private.trunk.step.state()[0], averaged.trunk.step.state()[0])


def test_averaged_weights_are_the_same_everywhere_after_a_round(tmp_path: Path) -> None:
    trained = run(tmp_path, "averaged", clients=3, cut=1)
    means = trained.strategy.state.weights
    # The evaluation after the last round brought every client the mean.
    for client in range(3):
        held = {
            f"{name}/{key}": tensor
            for name in ("edge", "tail")
            for key, tensor in part(trained, client, name).items()
        }
        assert equal(held, means)
