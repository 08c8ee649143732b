# SPDX-License-Identifier: Apache-2.0
"""Claims: each holds exactly where its tolerance says, and one that does not is found."""

import math

import pytest
import torch

from equivariance.experiments import Claim, Results, failures


def test_equality_is_relative_to_the_largest_entry_of_all_tensors() -> None:
    results = Results()
    reference = {"large": torch.tensor([100.0, 1.0]), "noise": torch.tensor([1e-9])}
    value = {"large": torch.tensor([100.0, 1.5]), "noise": torch.tensor([-1e-9])}
    results.equal("weights", "near", value, reference, tolerance=0.005)
    results.equal("weights", "far", value, reference, tolerance=0.0049)
    table = results.frame()
    assert list(table["holds"]) == [True, False]
    assert table["max_abs"].tolist() == [0.5, 0.5]
    assert table["max_rel"].tolist() == [0.005, 0.005]
    assert failures(table)["case"].tolist() == ["far"]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_finite_is_never_equal(value: float) -> None:
    results = Results()
    results.equal("outputs", "x", torch.tensor([value, 1.0]), torch.ones(2), tolerance=1e6)
    assert len(failures(results.frame())) == 1


def test_a_negative_control_fails_if_nothing_differs() -> None:
    results = Results()
    results.different("outputs", "same", torch.ones(2), torch.ones(2))
    results.different("outputs", "other", torch.ones(2), torch.zeros(2))
    assert failures(results.frame())["case"].tolist() == ["same"]


def test_chance_and_worse_look_at_the_value() -> None:
    results = Results()
    results.at_chance("accuracy %", "near", 12.0, 10.0, plain=90.0, tolerance=2.0)
    results.at_chance("accuracy %", "far", 7.9, 10.0, plain=90.0, tolerance=2.0)
    results.at_chance("accuracy %", "nothing to lose", 12.0, 10.0, plain=12.0, tolerance=2.0)
    results.worse("accuracy %", "worse", 80.0, 90.0, tolerance=10.0)
    results.worse("accuracy %", "better", 99.0, 90.0, tolerance=0.0)
    results.worse("perplexity", "worse", 9.0, 3.0, tolerance=6.0, higher_is_better=False)
    results.worse("perplexity", "better", 2.0, 3.0, tolerance=0.0, higher_is_better=False)
    table = results.frame()
    assert table["holds"].tolist() == [True, False, False, True, False, True, False]


def test_a_measurement_claims_nothing() -> None:
    results = Results()
    results.measured("accuracy %", "plain", 50.0, paper=97.65)
    table = results.frame()
    assert failures(table).empty
    assert table["paper"].tolist() == [97.65]
    assert table["claim"].isna().all()


def test_names_must_match() -> None:
    with pytest.raises(ValueError, match="names differ"):
        Results().equal("w", "x", {"a": torch.ones(1)}, {"b": torch.ones(1)}, tolerance=0.0)


def test_claims_read_as_words() -> None:
    assert [str(claim) for claim in Claim] == ["equal", "different", "at chance", "worse"]
