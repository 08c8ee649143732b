# SPDX-License-Identifier: Apache-2.0
"""Utility: what clients count together is what the joined model scores on all their images."""

import numpy as np
import pytest
import torch
from federation import Federation, federate, tiny_config
from torch.nn import functional

from clients.augment import normalise
from clients.data import ATTRIBUTES
from clients.owner import Owner
from clients.secrets import client_secret
from split import ModelSpec, build_split
from strategies.evaluation import Counts, utility_rows

CLIENTS, BATCH = 3, 7


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Federation:
    config = tiny_config(
        tmp_path_factory.mktemp("utility"), schedule="parallel", evaluate_batch_size=BATCH,
        permute="row", rounds=1, cut=1,
    )  # fmt: skip
    return federate(config, CLIENTS).train()


@pytest.mark.parametrize("split", ["validation", "test"])
def test_counts_equal_a_direct_evaluation(trained: Federation, split: str) -> None:
    config = trained.config
    model = build_split(ModelSpec.of(config), config.cut)
    weights = trained.weights()
    model.edge.vit.load_state_dict(
        {n: weights[n] for n in model.edge.vit.state_dict()}, strict=True
    )
    model.trunk.load_state_dict({n: weights[n] for n in model.trunk.state_dict()})
    model.tail.load_state_dict({n: weights[n] for n in model.tail.state_dict()})
    shards = [
        Owner(config, c, CLIENTS, client_secret(config, c)).shard(split) for c in range(CLIENTS)
    ]
    # Partial last batches are part of it.
    assert any(len(shard) % BATCH for shard in shards)
    images = torch.cat([normalise(np.asarray(shard.images)) for shard in shards])
    labels = np.concatenate([shard.labels for shard in shards]).astype(bool)
    with torch.no_grad():
        logits = model.forward(images)
    guesses = logits.numpy() > 0
    assert np.abs(logits.numpy()).min() > 1e-6  # no guess hangs on rounding

    per_attribute: dict[str, list[float]] = {"accuracy": [], "balanced_accuracy": [], "floor": []}
    for truth, guess in zip(labels.T, guesses.T, strict=True):
        recalls = [float((guess[truth == side] == side).mean()) for side in set(truth.tolist())]
        per_attribute["accuracy"].append(float((truth == guess).mean()))
        per_attribute["balanced_accuracy"].append(sum(recalls) / len(recalls))
        per_attribute["floor"].append(max(float(truth.mean()), float(1 - truth.mean())))
    loss = functional.binary_cross_entropy_with_logits(logits, torch.from_numpy(labels).float())

    rows = [row for row in trained.witness.rounds[0].metrics if row["split"] == split]
    told = {(row["attribute"], row["metric"]): row for row in rows if row["client"] == -1}
    assert len(told) == 1 + 3 * (1 + len(ATTRIBUTES))
    for metric, values in per_attribute.items():
        assert told["mean", metric]["value"] == pytest.approx(np.mean(values))
        for attribute, value in zip(ATTRIBUTES, values, strict=True):
            assert told[attribute, metric]["value"] == pytest.approx(value)
    assert told["mean", "loss"]["value"] == pytest.approx(loss.item(), rel=1e-5)
    assert {row["count"] for row in told.values()} == {len(labels)}
    held = {
        row["client"]: row["count"]
        for row in rows
        if (row["client"], row["metric"]) != (-1, "loss") and row["metric"] == "loss"
    }
    # A client without images of the split is not asked.
    assert held == {client: len(shard) for client, shard in enumerate(shards) if len(shard)}


def counts(images: int, loss: float, *columns: tuple[int, int, int]) -> Counts:
    """Per attribute: positives, true positives, true negatives."""
    return Counts(images, loss, *(np.array(one) for one in zip(*columns, strict=True)))


def test_utility_by_hand() -> None:
    one = counts(4, 1.0, (2, 1, 2), (0, 0, 3), (4, 4, 0))
    other = counts(1, 6.0, (1, 0, 0), (1, 1, 0), (1, 0, 0))
    pooled = Counts.pooled([one, other])
    assert (pooled.images, pooled.loss) == (5, 2.0)
    assert pooled.accuracy().tolist() == [3 / 5, 4 / 5, 4 / 5]
    # Two positives of three missed; and an attribute without negatives counts its one class.
    assert pooled.balanced_accuracy().tolist() == pytest.approx(
        [(1 / 3 + 2 / 2) / 2, (1 / 1 + 3 / 4) / 2, 4 / 5]
    )
    assert pooled.floor().tolist() == [3 / 5, 4 / 5, 5 / 5]
    rows = utility_rows({3: one, 8: other}, round=2, split="test", attributes=("a", "b", "c"))
    means = {(r["client"], r["metric"]): r["value"] for r in rows if r["attribute"] == "mean"}
    assert means[-1, "accuracy"] == pytest.approx((0.6 + 0.8 + 0.8) / 3)
    assert means[3, "accuracy"] == pytest.approx((3 + 3 + 4) / 12)
    assert means[8, "loss"] == 6.0
    assert {row["client"] for row in rows if row["attribute"] == "b"} == {-1}
    assert {(row["round"], row["split"]) for row in rows} == {(2, "test")}
