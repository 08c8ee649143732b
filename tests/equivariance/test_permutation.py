# SPDX-License-Identifier: Apache-2.0
"""Permutations as values act, multiply and invert as the matrices that they stand for."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load, save
from torch import Tensor

from equivariance import ColumnPermutation, RowPermutation, Secret, sample_column_order

quick = settings(deadline=None, max_examples=25, derandomize=True)
seeds = st.integers(0, 1000)


def matrix(order: Tensor) -> Tensor:
    """The dense P with (P x)[i] = x[order[i]], which the package never makes."""
    return torch.eye(order.shape[-1], dtype=torch.float64)[order]


def rows_of(seed: int, tokens: int, batch: int | None) -> RowPermutation:
    return RowPermutation.sample(Secret.from_seed(seed), tokens=tokens, batch=batch)


@quick
@given(
    tokens=st.integers(1, 6),
    batches=st.tuples(st.sampled_from([None, 3]), st.sampled_from([None, 3])),
    seed=seeds,
)
def test_rows_are_matrices_from_the_left(
    tokens: int, batches: tuple[int | None, int | None], seed: int
) -> None:
    p, q = rows_of(seed, tokens, batches[0]), rows_of(seed + 1, tokens, batches[1])
    x = torch.randn(3, tokens, 2, dtype=torch.float64)
    assert torch.equal(p.apply(x), matrix(p.order) @ x)
    assert torch.equal((p @ q).apply(x), p.apply(q.apply(x)))
    assert torch.equal(matrix((p @ q).order), matrix(p.order) @ matrix(q.order))
    assert torch.equal(p.inverse().apply(p.apply(x)), x)
    assert p @ p.inverse() == p.inverse() @ p
    assert (p @ q).batch == (batches[0] or batches[1])
    pairs = torch.randn(3, 2, tokens, tokens, dtype=torch.float64)
    dense = matrix(p.order) if p.batch is None else matrix(p.order).unsqueeze(1)
    assert torch.equal(p.apply_to_pairs(pairs), dense @ pairs @ dense.mT)
    shared = matrix(p.order) @ pairs[0, 0] @ matrix(p.order).mT
    assert torch.equal(p.apply_to_pairs(pairs[0, 0]), shared)


@quick
@given(size=st.integers(1, 4), heads=st.sampled_from([None, 1, 3]), seed=seeds)
def test_columns_are_matrices_from_the_right(size: int, heads: int | None, seed: int) -> None:
    dim = 3 * size
    p, q = (
        ColumnPermutation.sample(Secret.from_seed(s), dim=dim, heads=heads)
        for s in (seed, seed + 1)
    )
    x = torch.randn(2, dim, dtype=torch.float64)
    assert torch.equal(p.apply(x), x @ matrix(p.order).mT)
    assert torch.equal((p @ q).apply(x), q.apply(p.apply(x)))
    assert torch.equal(p.inverse().apply(p.apply(x)), x)
    assert p @ p.inverse() == ColumnPermutation.identity(dim, heads=heads)
    assert p.inner == ("none" if heads is None else "headwise")


@quick
@given(seed=seeds, batch=st.sampled_from([None, 2]), heads=st.sampled_from([None, 2]))
def test_a_stored_permutation_comes_back(seed: int, batch: int | None, heads: int | None) -> None:
    secret = Secret.from_seed(seed)
    rows = RowPermutation.sample(secret, tokens=5, batch=batch)
    columns = ColumnPermutation.sample(secret, dim=6, heads=heads)
    assert RowPermutation.from_state_dict(load(save(rows.state_dict()))) == rows
    assert ColumnPermutation.from_state_dict(load(save(columns.state_dict()))) == columns


def test_sampling_is_the_secret_s_and_keeps_a_prefix() -> None:
    secret = Secret.from_seed(0)
    rows = RowPermutation.sample(secret, tokens=12, batch=4, prefix=2)
    assert rows == RowPermutation.sample(secret, tokens=12, batch=4, prefix=2)
    assert rows != RowPermutation.sample(Secret.from_seed(1), tokens=12, batch=4, prefix=2)
    assert rows.order[:, :2].tolist() == [[0, 1]] * 4
    assert len({tuple(order) for order in rows.order.tolist()}) == 4
    assert RowPermutation.sample(secret, tokens=12, prefix=12) == RowPermutation.identity(12)
    columns = ColumnPermutation.sample(secret, dim=12, heads=3)
    assert torch.equal(columns.order, sample_column_order(secret, dim=12, heads=3))


def test_sizes_of_the_groups() -> None:
    """ViT-B: 64!^12 12! head by head, 768! if attention is left alone, 197! rows."""
    headwise, free = (ColumnPermutation.identity(768, heads=heads) for heads in (12, None))
    exact = 12 * math.log2(math.factorial(64)) + math.log2(math.factorial(12))
    assert headwise.log2_group_size == pytest.approx(exact)
    assert free.log2_group_size == pytest.approx(math.log2(math.factorial(768)))
    rows = RowPermutation.identity(197)
    assert rows.log2_group_size == pytest.approx(math.log2(math.factorial(197)))


def test_equality_is_of_the_values() -> None:
    order = torch.tensor([1, 0, 3, 2])
    assert RowPermutation(order) == RowPermutation(order.clone())
    assert RowPermutation(order) != RowPermutation(order.unsqueeze(0))
    assert RowPermutation(order) != ColumnPermutation(order)
    assert ColumnPermutation(order) != ColumnPermutation(order, 2)


def test_what_is_no_permutation_is_refused() -> None:
    with pytest.raises(ValueError, match="not a permutation"):
        RowPermutation(torch.tensor([0, 0]))
    with pytest.raises(ValueError, match="not a permutation"):
        ColumnPermutation(torch.tensor([0, 2]))
    with pytest.raises(ValueError, match=r"is \[D\]; got \[1, 2\]"):
        ColumnPermutation(torch.tensor([[0, 1]]))
    with pytest.raises(ValueError, match="mixes heads: 2 of 2"):
        ColumnPermutation(torch.tensor([0, 2, 1, 3]), 2)
    with pytest.raises(ValueError, match="for 2 and None heads are of different groups"):
        _ = ColumnPermutation.identity(4, heads=2) @ ColumnPermutation.identity(4)
    with pytest.raises(ValueError, match="has the keys order, heads; got order"):
        ColumnPermutation.from_state_dict({"order": torch.arange(4)})
    with pytest.raises(ValueError, match=r"prefix 5: allowed are 0 \.\.\. 4"):
        RowPermutation.sample(Secret.from_seed(0), tokens=4, prefix=5)
