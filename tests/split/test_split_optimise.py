# SPDX-License-Identifier: Apache-2.0
"""Optimisers: the cosine's ends, moments out and in again, and the weighted mean by hand."""

import math

import pytest
import torch
from torch import Tensor, nn

from split import OptimiserSpec, learning_rate, weighted_mean
from split.optimise import build_optimiser, export_moments, load_moments, step_at

SGD = OptimiserSpec(kind="sgd", lr_start=0.5, lr_end=0.1, momentum=0.9, weight_decay=0.01)
ADAMW = OptimiserSpec(kind="adamw", lr_start=0.5, lr_end=0.1, weight_decay=0.01)


def test_the_cosine_has_its_own_ends() -> None:
    rates = [learning_rate(SGD, progress) for progress in (0, 0.25, 0.5, 1)]
    assert rates == pytest.approx([0.5, 0.1 + 0.2 * (1 + math.sqrt(0.5)), 0.3, 0.1])


def module() -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))


def train(
    net: nn.Module, optimiser: torch.optim.Optimizer, spec: OptimiserSpec, steps: range
) -> None:
    for step in steps:
        net(torch.full((2, 3), float(step + 1))).square().sum().backward()
        step_at(optimiser, spec, step / 6)


@pytest.mark.parametrize("spec", [SGD, ADAMW], ids=["sgd", "adamw"])
def test_continued_from_moments_equals_never_stopped(spec: OptimiserSpec) -> None:
    straight = module()
    train(straight, build_optimiser(spec, straight.parameters()), spec, range(6))

    first = module()
    optimiser = build_optimiser(spec, first.parameters())
    train(first, optimiser, spec, range(3))
    weights, moments = first.state_dict(), export_moments(optimiser, first)
    assert {name.rpartition(":")[2] for name in moments} == (
        {"momentum_buffer"} if spec.kind == "sgd" else {"step", "exp_avg", "exp_avg_sq"}
    )
    second = module()
    second.load_state_dict(weights)
    optimiser = build_optimiser(spec, second.parameters())
    load_moments(optimiser, second, moments)
    train(second, optimiser, spec, range(3, 6))
    for name, tensor in straight.state_dict().items():
        assert torch.equal(second.state_dict()[name], tensor), name


def test_moments_are_copies_and_none_is_no_moment() -> None:
    net = module()
    optimiser = build_optimiser(SGD, net.parameters())
    assert export_moments(optimiser, net) == {}
    train(net, optimiser, SGD, range(1))
    before = export_moments(optimiser, net)
    kept = {name: tensor.clone() for name, tensor in before.items()}
    train(net, optimiser, SGD, range(1, 2))
    assert all(torch.equal(before[name], kept[name]) for name in kept)
    plain = OptimiserSpec(kind="sgd", lr_start=0.5, lr_end=0.1, momentum=0.0)
    optimiser = build_optimiser(plain, net.parameters())
    train(net, optimiser, plain, range(1))
    assert export_moments(optimiser, net) == {}


def test_a_step_uses_its_rate_and_clears_gradients() -> None:
    net = nn.Linear(1, 1, bias=False)
    nn.init.ones_(net.weight)
    spec = OptimiserSpec(kind="sgd", lr_start=1.0, lr_end=0.5, momentum=0.0)
    optimiser = build_optimiser(spec, net.parameters())
    net(torch.full((1, 1), 0.25)).sum().backward()
    step_at(optimiser, spec, 1.0)
    assert net.weight.item() == 1 - 0.5 * 0.25
    assert net.weight.grad is None


def test_weighted_mean_by_hand() -> None:
    states: dict[int, dict[str, Tensor]] = {
        2: {"a": torch.tensor([4.0, 0.0]), "b": torch.tensor([1.0]), "n": torch.tensor(7)},
        0: {"a": torch.tensor([1.0, 2.0]), "n": torch.tensor(5)},
        1: {"a": torch.tensor([0.0, 0.0]), "b": torch.tensor([5.0]), "n": torch.tensor(6)},
    }
    mean = weighted_mean(states, {0: 1.0, 1: 1.0, 2: 2.0})
    assert mean["a"].tolist() == [2.25, 0.5]
    # Absent at client 0: the mean of those that have it; integers are the first client's.
    assert mean["b"].tolist() == pytest.approx([7 / 3])
    assert mean["n"].item() == 5
    assert list(mean) == ["a", "b", "n"]


def test_weighted_mean_does_not_depend_on_who_came_first() -> None:
    generator = torch.Generator().manual_seed(0)
    states = {client: {"a": torch.randn(9, generator=generator)} for client in range(4)}
    weights = {client: client + 0.3 for client in range(4)}
    backwards = dict(reversed(states.items()))
    assert torch.equal(weighted_mean(states, weights)["a"], weighted_mean(backwards, weights)["a"])
