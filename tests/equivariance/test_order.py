# SPDX-License-Identifier: Apache-2.0
"""Permutations as index tensors form a group, and acting with them is exact."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from equivariance import check_permutation, compose, invert
from equivariance.order import reorder

quick = settings(deadline=None, max_examples=25, derandomize=True)


def orders(batch: int, length: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(batch, length, generator=generator).argsort(dim=-1)


@quick
@given(st.integers(1, 5), st.integers(1, 30), st.integers(0, 1000))
def test_invert_is_the_inverse(batch: int, length: int, seed: int) -> None:
    order = orders(batch, length, seed)
    identity = torch.arange(length).expand(batch, length)
    assert torch.equal(compose(order, invert(order)), identity)
    assert torch.equal(compose(invert(order), order), identity)
    assert torch.equal(invert(order[0]), invert(order)[0])


@quick
@given(st.integers(1, 5), st.integers(1, 30), st.integers(0, 1000))
def test_compose_applies_the_first_then_the_second(batch: int, length: int, seed: int) -> None:
    first, second = orders(batch, length, seed), orders(batch, length, seed + 1)
    x = torch.randn(batch, length)
    assert torch.equal(x.gather(1, first).gather(1, second), x.gather(1, compose(first, second)))
    assert torch.equal(compose(first[0], second), compose(first[:1].expand_as(second), second))
    assert torch.equal(compose(first, second[0]), compose(first, second[:1].expand_as(first)))


def test_invert_accepts_an_expanded_order() -> None:
    order = torch.tensor([2, 0, 1]).expand(4, 3)
    assert torch.equal(invert(order), torch.tensor([1, 2, 0]).expand(4, 3))


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_reorder_differentiates_twice(dim: int) -> None:
    x = torch.randn(3, 4, 5, dtype=torch.float64, requires_grad=True)
    order = torch.randperm(x.shape[dim])
    assert torch.autograd.gradcheck(lambda x: reorder(x, order, dim), x)
    assert torch.autograd.gradgradcheck(lambda x: reorder(x, order, dim) ** 2, x)


def test_reorder_works_under_vmap() -> None:
    x, order = torch.randn(3, 4, 5), torch.tensor([2, 0, 3, 1])
    mapped = torch.func.vmap(lambda x: reorder(x, order, 0))(x)
    assert torch.equal(mapped, x[:, order])


@pytest.mark.parametrize(
    ("order", "fault"),
    [
        (torch.tensor([0, 1, 1]), "not a permutation"),
        (torch.tensor([1, 2, 3]), "not a permutation"),
        (torch.tensor([[0, 1], [0, 0]]), "not a permutation"),
        (torch.tensor([0.0, 1.0]), "torch.float32"),
        (torch.zeros(1, 1, 1, dtype=torch.int64), r"\[1, 1, 1\]"),
    ],
)
def test_check_permutation_finds(order: torch.Tensor, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        check_permutation(order)
    check_permutation(torch.tensor([[1, 0, 2], [2, 0, 1]]))
