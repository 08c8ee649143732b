# SPDX-License-Identifier: Apache-2.0
"""Training of attackers: seeded, resumable, judged on other people."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from attacking import workshop
from torch import Tensor, nn

from attacks.learning import Fold, Recipe, fit, split_auxiliary
from attacks.view import Auxiliary
from split.seeds import seeded

RECIPE = Recipe(epochs=4, batch=8, steps=3, lr=0.05)
FOLD = Fold(np.arange(20), np.arange(20, 26))


class Interrupted(Exception):
    """Stands for a killed machine."""


def train(folder: Path, stop_at: int | None = None) -> tuple[nn.Module, list[int], float]:
    with seeded(1):
        network = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.2), nn.Linear(4, 1))
        data = torch.randn(26, 3)
    seen: list[int] = []

    def loss(rows: np.ndarray, index: int) -> Tensor:
        if network.training:
            seen.append(index)
            if stop_at is not None and len(seen) > stop_at:
                raise Interrupted
        x = data[rows]
        return (network(x) - x.sum(dim=1, keepdim=True)).square().mean()

    return network, seen, fit("stage", network, loss, FOLD, RECIPE, workshop(folder))


def test_a_stopped_training_goes_on_to_the_same_numbers(tmp_path: Path) -> None:
    whole, seen, value = train(tmp_path / "whole")
    with pytest.raises(Interrupted):
        train(tmp_path / "cut", stop_at=7)
    resumed, rest, again = train(tmp_path / "cut")
    assert rest == seen[5:]  # from the start of the epoch that was cut, the second of 5 steps
    assert again == value
    for a, b in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(a, b)
    histories = [json.loads((tmp_path / n / "history.json").read_text()) for n in ("whole", "cut")]
    assert histories[0] == histories[1]
    assert [row["epoch"] for row in histories[0]] == [0, 1, 2, 3, 4]


def test_the_best_epoch_on_held_out_rows_is_kept(tmp_path: Path) -> None:
    network, _, value = train(tmp_path)
    rows = json.loads((tmp_path / "history.json").read_text())
    assert value == min(row["held_out"] for row in rows) < rows[0]["held_out"]
    assert not network.training


def test_training_and_held_out_batches_never_share_an_index(tmp_path: Path) -> None:
    _, seen, _ = train(tmp_path)
    assert all(index % 2 == 0 for index in seen)
    assert len(set(seen)) == len(seen)


def test_held_out_people_are_other_people() -> None:
    identities = np.repeat(np.arange(23), 3)
    blank = np.zeros((69, 4, 4, 3), np.uint8)
    fold = split_auxiliary(Auxiliary(blank, np.zeros((69, 2), np.uint8), identities), seed=5)
    assert set(identities[fold.learn]).isdisjoint(identities[fold.held_out])
    assert len(np.unique(identities[fold.held_out])) == 2
    assert len(fold.learn) + len(fold.held_out) == 69
