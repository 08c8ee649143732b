# SPDX-License-Identifier: Apache-2.0
"""Rotation: which arguments change a client's row permutation, and which must not."""

from typing import Any

import pytest
import torch

from equivariance import ROTATIONS, Rotation, Secret, check_permutation, row_orders

SECRET = Secret.from_seed(0, "client", 0)
BASE: dict[str, Any] = {"purpose": "train", "round": 1, "step": 2, "batch": 5, "tokens": 16}


def orders(rotation: Rotation, **changes: Any) -> torch.Tensor:
    return row_orders(SECRET, rotation=rotation, **(BASE | changes))


@pytest.mark.parametrize("rotation", ROTATIONS)
def test_orders_are_permutations_and_reproducible(rotation: Rotation) -> None:
    result = orders(rotation)
    assert result.shape == (5, 16)
    check_permutation(result)
    assert torch.equal(result, orders(rotation))
    assert torch.equal(result[:3], orders(rotation, batch=3))
    other = Secret.from_seed(0, "client", 1)
    assert not torch.equal(result, row_orders(other, rotation=rotation, **BASE))


@pytest.mark.parametrize(
    ("rotation", "moves"),
    [
        ("sample", {"purpose", "round", "step"}),
        ("batch", {"purpose", "round", "step"}),
        ("round", {"round"}),
        ("fixed", set()),
    ],
)
def test_what_changes_the_order(rotation: Rotation, moves: set[str]) -> None:
    changes: dict[str, Any] = {"purpose": "evaluate", "round": 2, "step": 1}
    changed = {
        name
        for name, value in changes.items()
        if not torch.equal(orders(rotation), orders(rotation, **{name: value}))
    }
    assert changed == moves


def test_only_sample_tells_samples_apart() -> None:
    for rotation in ROTATIONS:
        distinct = len({tuple(order) for order in orders(rotation).tolist()})
        assert distinct == (5 if rotation == "sample" else 1)


def test_rotations_do_not_share_permutations() -> None:
    firsts = {tuple(orders(rotation)[0].tolist()) for rotation in ROTATIONS}
    assert len(firsts) == len(ROTATIONS)


def test_an_unknown_rotation_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'epoch' is unknown; allowed are sample, batch, round"):
        orders("epoch")  # type: ignore[arg-type]
