# SPDX-License-Identifier: Apache-2.0
"""Accuracies and AUC against counting by hand."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attacks import AttackError
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
    assert [results[name].left_out for name in ("accuracy", "auc")] == [0, 1]
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


@pytest.mark.filterwarnings("error")
def test_no_attribute_with_both_classes_gives_nan_and_says_how_many() -> None:
    for result in score_attributes(torch.randn(4, 2), torch.ones(4, 2), seed=0)[1:]:
        assert np.isnan([result.value, result.low, result.high]).all()
        assert result.left_out == 2


def test_shapes_that_would_be_broadcast_are_refused() -> None:
    with pytest.raises(AttackError, match=r"places: shape is \(1, 4\).*\(2, 4\)"):
        score_positions(torch.zeros(1, 4), torch.zeros(2, 4), seed=0)
    with pytest.raises(AttackError, match=r"scores: shape is \(4, 1\).*\(4, 2\)"):
        score_attributes(torch.zeros(4, 1), torch.zeros(4, 2), seed=0)
    with pytest.raises(AttackError, match="some are NaN"):
        score_attributes(torch.full((4, 2), torch.nan), torch.zeros(4, 2), seed=0)
    with pytest.raises(AttackError, match="bootstrap: 0 images"):
        bootstrap_interval(lambda rows: 0.0, 0, 0)
