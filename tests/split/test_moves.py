# SPDX-License-Identifier: Apache-2.0
"""The three moves: absorb recomputes smash bit by bit, and the gradients are those of one graph."""

from pathlib import Path

import pytest
import torch
from federation import tiny_config
from torch import Tensor, nn
from torch.nn import functional

from clients.owner import Moment, Owner
from clients.secrets import client_secret
from split import (
    Batch,
    ModelSpec,
    SplitTransformer,
    absorb,
    build_split,
    finish,
    predict,
    seeded,
    smash,
)
from split.moves import sealed_tokens

VARIANTS: dict[str, dict[str, object]] = {
    "plain": {"permute": "none", "augment": "none"},
    "noise-on-pixels": {"defences": "gn:0.5"},
    "noise-on-embedding": {"defences": "gn:0.5", "defence_point": "embedding"},
    "batch-shuffle": {"defences": "bs:0.4", "defence_point": "embedding"},
    "all": {
        "defences": "lp:0.3,bs:0.4,gn:0.5",
        "defence_point": "embedding",
        "permute": "row+column",
        "drop_path": 0.5,
        "pool": "mean",
        "return_": "all",
    },
}


@pytest.fixture(params=[0, 2], ids=["cut0", "cut2"])
def cut(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(params=VARIANTS, ids=str)
def case(
    request: pytest.FixtureRequest, tmp_path: Path, cut: int
) -> tuple[SplitTransformer, list[Batch]]:
    """A model, and one batch made anew three times, as by three processes."""
    # Drop-path rises from 0 in the first block: the edge's second one has chance.
    changes = {"permute": "row", "depth": 3, "augment": "paper", **VARIANTS[request.param]}
    config = tiny_config(tmp_path, cut=cut, **changes)
    model = build_split(ModelSpec.of(config), cut)
    owners = [Owner(config, 1, 2, client_secret(config, 1)) for _ in range(3)]
    moment = Moment(purpose="train", round=2, step=1)
    return model, [owner.training_batch(moment, 3) for owner in owners]


def gradients(module: nn.Module) -> dict[str, Tensor]:
    return {name: p.grad for name, p in module.named_parameters() if p.grad is not None}


def test_the_recomputed_edge_is_bit_exact(case: tuple[SplitTransformer, list[Batch]]) -> None:
    model, batches = case
    sent = smash(model.edge, batches[0])
    torch.rand(7)  # the global generator moves on between messages
    assert torch.equal(sealed_tokens(model.edge, batches[1]), sent)
    assert not sent.requires_grad


def test_moves_give_the_gradients_of_one_graph(
    case: tuple[SplitTransformer, list[Batch]],
) -> None:
    model, batches = case
    # The trunk's own chance is not the moves' matter.
    trunk = model.trunk.eval()
    smashed = smash(model.edge, batches[0]).requires_grad_()
    hidden = trunk(smashed)
    finished = finish(model.tail, batches[1], hidden)
    hidden.backward(finished.hidden_gradient)
    assert smashed.grad is not None
    absorb(model.edge, batches[2], smashed.grad)
    stepwise = {**gradients(model.edge), **gradients(model.tail)}

    for part in (model.edge, model.trunk, model.tail):
        part.zero_grad(set_to_none=True)
    batch = batches[0]
    with seeded(batch.seed):
        tokens = batch.seal(model.edge(batch.images))
    logits = model.tail(batch.open(trunk(tokens)))
    loss = functional.binary_cross_entropy_with_logits(logits, batch.labels)
    loss.backward()
    whole = {**gradients(model.edge), **gradients(model.tail)}
    assert finished.loss == pytest.approx(loss.item(), rel=1e-6)
    torch.testing.assert_close(finished.logits_BK, logits.detach(), rtol=1e-5, atol=1e-6)
    assert stepwise.keys() == whole.keys()
    torch.testing.assert_close(stepwise, whole, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("pooled", [True, False])
def test_finish_gives_the_gradient_of_hidden(tmp_path: Path, pooled: bool) -> None:
    config = tiny_config(tmp_path, permute="row", pool="mean", return_="all")
    model = build_split(ModelSpec.of(config), 0)
    batch = Owner(config, 0, 2, client_secret(config, 0)).training_batch(
        Moment(purpose="train", round=1, step=0), 1
    )
    shape = (6, 16) if pooled else (6, 17, 16)
    hidden = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    finished = finish(model.tail, batch, hidden)
    leaf = hidden.clone().requires_grad_()
    opened = leaf if pooled else batch.open(leaf)
    (expected,) = torch.autograd.grad(
        functional.binary_cross_entropy_with_logits(model.tail(opened), batch.labels), leaf
    )
    torch.testing.assert_close(finished.hidden_gradient, expected, rtol=0, atol=0)
    assert not hidden.requires_grad
    torch.testing.assert_close(predict(model.tail, batch, hidden), finished.logits_BK)


def test_other_moments_and_clients_have_other_batches(tmp_path: Path) -> None:
    config = tiny_config(tmp_path, permute="row", defences="gn:0.5", defence_point="embedding")
    model = build_split(ModelSpec.of(config), 0)
    sent = [
        smash(
            model.edge,
            Owner(config, client, 2, client_secret(config, client)).training_batch(
                Moment(purpose="train", round=round, step=step), 2
            ),
        )
        for client, round, step in [(0, 1, 0), (1, 1, 0), (0, 1, 1), (0, 2, 0)]
    ]
    assert all(not torch.equal(one, other) for i, one in enumerate(sent) for other in sent[i + 1 :])
    assert torch.equal(sent[0][:, 0].std(dim=0) > 0, torch.ones(16, dtype=torch.bool))


def test_a_frozen_edge_is_left_alone(tmp_path: Path) -> None:
    config = tiny_config(tmp_path)
    model = build_split(ModelSpec.of(config), 1)
    model.edge.requires_grad_(False)
    batch = Owner(config, 0, 2, client_secret(config, 0)).training_batch(
        Moment(purpose="train", round=1, step=0), 1
    )
    absorb(model.edge, batch, torch.ones(6, 17, 16))
    assert not gradients(model.edge)
