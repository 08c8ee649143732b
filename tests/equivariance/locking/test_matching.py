# SPDX-License-Identifier: Apache-2.0
"""The best admissible permutation, against trying them all."""

from itertools import permutations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from equivariance import check_headwise
from equivariance.locking.matching import best_headwise, best_order, nearest


@settings(deadline=None, max_examples=8, derandomize=True)
@given(heads=st.sampled_from([1, 2, 3, 6]), seed=st.integers(0, 1000))
def test_no_admissible_permutation_scores_higher(heads: int, seed: int) -> None:
    scores = torch.randn(6, 6, generator=torch.Generator().manual_seed(seed))
    order = best_headwise(scores, heads)
    check_headwise(order, heads)
    best = -torch.inf
    for candidate in permutations(range(6)):
        tried = torch.tensor(candidate)
        try:
            check_headwise(tried, heads)
        except ValueError:
            continue
        best = max(best, float(scores[torch.arange(6), tried].sum()))
    assert float(scores[torch.arange(6), order].sum()) == pytest.approx(best, rel=1e-5)


def test_columns_that_want_the_same_match_are_settled_by_assignment_only() -> None:
    scores = torch.tensor([[3.0, 2.0], [2.0, 0.0]])
    assert nearest(scores).tolist() == [0, 0]
    assert best_order(scores).tolist() == [1, 0]
