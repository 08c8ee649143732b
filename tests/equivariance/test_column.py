# SPDX-License-Identifier: Apache-2.0
"""Column permutations stay within the admissible group and act exactly."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from equivariance import (
    Secret,
    check_headwise,
    log2_group_size,
    permute_columns,
    sample_column_order,
    unpermute_columns,
)

quick = settings(deadline=None, max_examples=25, derandomize=True)
SECRET = Secret.from_seed(0, "owner")


@quick
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 1000))
def test_sampled_orders_keep_heads_together(heads: int, size: int, seed: int) -> None:
    secret = Secret.from_seed(seed)
    order = sample_column_order(secret, dim=heads * size, heads=heads)
    check_headwise(order, heads)
    assert torch.equal(order, sample_column_order(secret, dim=heads * size, heads=heads))


def test_sampling_reaches_the_whole_group() -> None:
    """Two heads of two features: 2!^2 2! = 8 admissible orders."""
    drawn = {
        tuple(sample_column_order(Secret.from_seed(seed), dim=4, heads=2).tolist())
        for seed in range(200)
    }
    assert len(drawn) == 8


def test_heads_differ_within() -> None:
    """The paper counts one permutation for all heads; here each has its own."""
    within = sample_column_order(SECRET, dim=64, heads=4).reshape(4, 16) % 16
    assert len({tuple(head) for head in within.tolist()}) == 4


def test_permute_columns_is_exact_and_so_is_its_gradient() -> None:
    x = torch.randn(3, 5, 12, requires_grad=True)
    order, upstream = sample_column_order(SECRET, dim=12, heads=3), torch.randn(3, 5, 12)
    permuted = permute_columns(x, order)
    assert torch.equal(permuted, x[..., order])
    assert torch.equal(unpermute_columns(permuted, order), x)
    (gradient,) = torch.autograd.grad(permuted, x, upstream)
    assert torch.equal(gradient, unpermute_columns(upstream, order))


@pytest.mark.parametrize("order", [torch.arange(11), torch.zeros(12), torch.zeros(1, 12).long()])
def test_an_order_that_does_not_fit_is_named(order: torch.Tensor) -> None:
    with pytest.raises(ValueError, match=r"x \[3, 12\] is int64 \[12\]; got"):
        permute_columns(torch.zeros(3, 12), order)


def test_check_headwise_finds_mixing() -> None:
    check_headwise(torch.tensor([3, 2, 0, 1]), 2)
    with pytest.raises(ValueError, match=r"mixes heads: 2 of 2"):
        check_headwise(torch.tensor([0, 2, 1, 3]), 2)
    with pytest.raises(ValueError, match="not a permutation"):
        check_headwise(torch.tensor([0, 0, 1, 1]), 2)
    with pytest.raises(ValueError, match="4 features cannot be split into 3"):
        check_headwise(torch.arange(4), 3)


def test_group_size() -> None:
    assert log2_group_size(4, 2) == pytest.approx(3)
    exact = math.log2(math.factorial(64)) * 12 + math.log2(math.factorial(12))
    assert log2_group_size(768, 12) == pytest.approx(exact)
    assert log2_group_size(768, 1) == pytest.approx(math.log2(math.factorial(768)))
