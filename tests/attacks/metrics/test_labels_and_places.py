# SPDX-License-Identifier: Apache-2.0
"""Accuracies and AUC against counting by hand."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attacks.metrics import (
    auc,
    balanced_accuracy,
    bootstrap_interval,
    score_attributes,
    score_positions,
)


def test_position_accuracy_by_hand() -> None:
    true = torch.tensor([[0, 1, 2, 3], [3, 2, 1, 0]])
    guess = torch.tensor([[0, 1, 3, 2], [3, 2, 1, 0]])
    (result,) = score_positions(guess, true, seed=0)
    assert (result.metric, result.value, result.count) == ("position_accuracy", 0.75, 2)


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=12),
)
@settings(max_examples=60, deadline=None)
def test_auc_counts_pairs_and_half_of_ties(pairs: list[tuple[int, bool]]) -> None:
    scores, labels = np.array([[float(s)] for s, _ in pairs]), np.array([[y] for _, y in pairs])
    yes = [s for s, y in pairs if y]
    no = [s for s, y in pairs if not y]
    found = auc(scores, labels)
    if not yes or not no:
        assert np.isnan(found)
    else:
        expected = np.mean([(a > b) + 0.5 * (a == b) for a in yes for b in no])
        assert found == pytest.approx(expected)


def test_accuracies_by_hand() -> None:
    scores = torch.tensor([[1.0, -1.0], [1.0, 2.0], [-1.0, -2.0], [2.0, -3.0]])
    labels = torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    results = {r.metric: r for r in score_attributes(scores, labels, seed=0)}
    assert results["accuracy"].value == pytest.approx(6 / 8)
    # The second attribute has no positives, so it counts for accuracy alone.
    assert results["balanced_accuracy"].value == pytest.approx((1.0 + 0.5) / 2)
    # Pairs: 1.0 ties with 1.0 and beats -1.0, 2.0 beats both: 3.5 of 4.
    assert results["auc"].value == pytest.approx(3.5 / 4)
    assert np.isnan(balanced_accuracy(scores.numpy()[:, 1:], labels.numpy()[:, 1:] > 0))


def test_the_interval_covers_the_mean_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(0)
    covered = 0
    for trial in range(200):
        sample = generator.normal(size=40)
        low, high = bootstrap_interval(
            lambda rows, sample=sample: float(sample[rows].mean()), 40, trial, draws=200
        )
        covered += low <= 0 <= high
    assert 0.88 <= covered / 200 <= 0.99
