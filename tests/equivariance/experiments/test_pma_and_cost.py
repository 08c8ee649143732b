# SPDX-License-Identifier: Apache-2.0
"""PMA is invariant in both directions; an index permutation adds no operation."""

import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from equivariance.experiments import EXPERIMENTS, ExperimentError, failures
from equivariance.experiments.models.set_transformer import SetTransformer


@settings(max_examples=8, deadline=None)
@given(
    heads=st.sampled_from([1, 2, 4]),
    seeds=st.integers(1, 3),
    elements=st.integers(2, 7),
    seed=st.integers(0, 99),
)
def test_pma_outputs_and_gradients_align(heads: int, seeds: int, elements: int, seed: int) -> None:
    sizes = {"dim": 8, "heads": heads, "seeds": seeds, "elements": elements, "batch-size": 3}
    table = EXPERIMENTS["pma"].run_with(sizes | {"seed": seed, "steps": 2})
    equal = table[table["claim"] == "equal"]
    assert equal["holds"].all()
    assert equal["max_rel"].max() < 1e-9


def test_pma_controls_see_the_order() -> None:
    table = EXPERIMENTS["pma"].run_with({"steps": 1})
    assert table[table["claim"] == "different"]["holds"].tolist() == [True, True]
    assert set(table["paper"].dropna()) == {"pseudo-invariant"}


def test_pooling_that_sees_the_order_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    pma = SetTransformer.pooled

    def by_place(self: SetTransformer, z_BND: torch.Tensor) -> torch.Tensor:
        places = torch.arange(z_BND.shape[1], dtype=z_BND.dtype)
        return pma(self, z_BND + places[:, None])

    monkeypatch.setattr(SetTransformer, "pooled", by_place)
    broken = failures(EXPERIMENTS["pma"].run_with({"steps": 1}))
    assert {"outputs", "weight gradients", "pooled", "weights"} <= set(broken["quantity"])


def test_sizes_must_fit() -> None:
    with pytest.raises(ExperimentError, match="dim = 9: must be a multiple of heads = 4"):
        EXPERIMENTS["pma"].run_with({"dim": 9})


@pytest.fixture(scope="module")
def cost() -> pd.DataFrame:
    sizes = {"model": "test_vit", "batch-size": 2, "timed-batch": 1, "repeat": 1}
    return EXPERIMENTS["cost"].run_with(sizes)


def test_an_index_permutation_costs_no_operations(cost: pd.DataFrame) -> None:
    assert failures(cost).empty
    flops = cost[cost["quantity"] == "GFLOPs of an image"].set_index("case")["value"]
    for kind in ("row", "column", "row and column"):
        assert flops[f"index, {kind}"] == flops["plain"] < flops[f"dense, {kind}"]
    # 8 N^2 D and 8 N D^2 operations, for both permutations forward and backward.
    assert flops["dense, row"] - flops["plain"] == pytest.approx(8 * 101**2 * 64 / 1e9)
    assert flops["dense, column"] - flops["plain"] == pytest.approx(8 * 101 * 64**2 / 1e9)


def test_memory_and_time_are_measured_in_all_forms(cost: pd.DataFrame) -> None:
    counted = cost[cost["quantity"] == "GiB of a step"]
    timed = cost[cost["quantity"] == "ms of permuting 1 images"]
    assert len(counted) == 7
    assert len(timed) == 6
    assert (counted["value"] > 0).all()
    assert (timed["value"] > 0).all()


def test_cost_wants_a_vision_transformer() -> None:
    with pytest.raises(ExperimentError, match="model = resnet18: is no timm VisionTransformer"):
        EXPERIMENTS["cost"].run_with({"model": "resnet18"})
