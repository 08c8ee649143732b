# SPDX-License-Identifier: Apache-2.0
"""Split learning changes nothing: against one model in one process, and among its own variants."""

from pathlib import Path

import pytest
import torch
from federation import Federation, federate, tiny_config
from torch import Tensor
from torch.nn import functional

from clients.owner import Moment, Owner
from clients.secrets import client_secret, column_secret
from clients.session import client_optimiser
from config import RunConfig
from equivariance import conjugate_state, invert, sample_column_order
from server_app.run import trunk_spec
from split import ModelSpec, SplitTransformer, build_split
from split.optimise import build_optimiser, step_at
from strategies import SCHEDULES


def unsplit_weights(config: RunConfig, clients: int) -> tuple[dict[str, Tensor], list[float]]:
    """Weights and losses of one model trained on all clients' batches of each step as one."""
    model = build_split(ModelSpec.of(config), config.cut)
    parts = {
        "client": (model.edge, model.tail),
        "trunk": (model.trunk,),
    }
    specs = {
        "client": client_optimiser(config),
        "trunk": trunk_spec(config, SCHEDULES[config.schedule]).optimiser,
    }
    optimisers = {
        name: build_optimiser(specs[name], [p for m in modules for p in m.parameters()])
        for name, modules in parts.items()
    }
    owners = [Owner(config, c, clients, client_secret(config, c)) for c in range(clients)]
    losses = []
    steps = config.steps_per_round
    for round in range(1, config.rounds + 1):
        for step in range(steps):
            moment = Moment(purpose="train", round=round, step=step)
            batches = [owner.training_batch(moment, steps) for owner in owners]
            logits = model.forward(torch.cat([batch.images for batch in batches]))
            labels = torch.cat([batch.labels for batch in batches])
            loss = functional.binary_cross_entropy_with_logits(logits, labels)
            loss.backward()
            progress = (round - 1 + step / steps) / config.rounds
            for name, optimiser in optimisers.items():
                step_at(optimiser, specs[name], progress)
            losses.append(loss.item())
    return model.state_dict(), losses


def largest_difference(one: dict[str, Tensor], other: dict[str, Tensor]) -> float:
    """The largest difference of any weight, relative to the largest weight of its tensor."""
    assert one.keys() == other.keys()
    return max(
        float((one[name] - other[name]).abs().max() / other[name].abs().max().clamp(min=1e-3))
        for name in one
    )


def trained(config: RunConfig, clients: int = 1) -> Federation:
    weights = None
    if "column" in config.permute:
        trunk = build_split(ModelSpec.of(config), config.cut).trunk
        order = sample_column_order(column_secret(config), dim=trunk.dim, heads=trunk.heads)
        weights = conjugate_state(trunk.state_dict(), order, heads=trunk.heads)
    return federate(config, clients, weights=weights).train()


def plain_weights(run: Federation) -> dict[str, Tensor]:
    """A run's weights with the column permutation taken out of the trunk."""
    config, weights = run.config, run.weights()
    if "column" not in config.permute:
        return weights
    module = build_split(ModelSpec.of(config), config.cut).trunk
    order = sample_column_order(column_secret(config), dim=module.dim, heads=module.heads)
    trunk = run.trunk.step.state()[0]
    return {**weights, **conjugate_state(trunk, invert(order), heads=module.heads)}


@pytest.mark.parametrize("cut", [0, 1])
@pytest.mark.parametrize("pool", ["cls", "mean"])
@pytest.mark.parametrize("returns", ["pooled", "all"])
def test_split_equals_unsplit(tmp_path: Path, cut: int, pool: str, returns: str) -> None:
    config = tiny_config(
        tmp_path, cut=cut, pool=pool, return_=returns, momentum=0.9, schedule="sequential"
    )
    weights, losses = unsplit_weights(config, clients=1)
    run = trained(config)
    assert largest_difference(run.weights(), weights) < 1e-5
    assert run.witness.value("loss") == pytest.approx(sum(losses[-2:]) / 2, rel=1e-5)


@pytest.mark.parametrize("permute", ["row", "column", "row+column"])
@pytest.mark.parametrize(
    ("cut", "more"),
    [
        (0, {}),
        (1, {"pool": "mean", "return_": "all"}),
        (0, {"permute_cls": True, "return_": "all"}),
        (0, {"rotation": "batch"}),
        (0, {"rotation": "fixed"}),
        (0, {"edge_position": "none"}),
    ],
    ids=["cls", "mean-all-cut1", "permuted-cls", "batch", "fixed", "no-positions"],
)
def test_permuted_equals_plain(
    tmp_path: Path, permute: str, cut: int, more: dict[str, object]
) -> None:
    if more.get("permute_cls") and "row" not in permute:
        pytest.skip("permute-cls is a row permutation")
    more = {"schedule": "parallel", "rounds": 3, "cut": cut, **more}
    plain_more = {key: value for key, value in more.items() if key != "permute_cls"}
    plain = trained(tiny_config(tmp_path / "plain", **plain_more), clients=2)
    permuted = trained(tiny_config(tmp_path / "permuted", permute=permute, **more), clients=2)
    assert largest_difference(plain_weights(permuted), plain.weights()) < 2e-5
    for split in ("validation", "test"):
        assert permuted.witness.value("accuracy", split=split) == pytest.approx(
            plain.witness.value("accuracy", split=split), abs=1e-9
        )


def test_clients_averaging_each_step_equal_one_big_batch(tmp_path: Path) -> None:
    config = tiny_config(
        tmp_path, schedule="parallel", rounds=4, steps_per_round=1, momentum=0.0, permute="row"
    )
    weights, _ = unsplit_weights(config, clients=3)
    assert largest_difference(trained(config, clients=3).weights(), weights) < 1e-5


def test_the_oracle_is_timm_itself(tmp_path: Path) -> None:
    config = tiny_config(tmp_path)
    model: SplitTransformer = build_split(ModelSpec.of(config), 1)
    from split import build_vit

    images = torch.randn(3, 3, 16, 16)
    assert torch.equal(model.forward(images), build_vit(ModelSpec.of(config))(images))
