# SPDX-License-Identifier: Apache-2.0
"""Attackers on small faces: what each must be able to do, and what must stop it."""

from pathlib import Path

import pytest
import torch
from attacking import findings, placed, psnr
from finished import finished_run

from attacks import Scene
from attacks.ordering import assigned, in_edge_order
from equivariance import invert, permute_rows


def test_in_edge_order_undoes_a_permutation() -> None:
    tokens, order = torch.randn(2, 5, 3), torch.tensor([[4, 0, 3, 1, 2], [1, 2, 0, 4, 3]])
    assert torch.equal(in_edge_order(permute_rows(tokens, order), order), tokens)


def test_assignment_is_one_to_one_and_likeliest() -> None:
    logits = torch.log(torch.tensor([[[0.6, 0.3, 0.1], [0.5, 0.4, 0.1], [0.2, 0.2, 0.6]]]))
    # 0.6 x 0.4 x 0.6 beats 0.3 x 0.5 x 0.6.
    assert assigned(logits).tolist() == [[0, 1, 2]]


def test_the_decoder_inverts_what_is_not_permuted(tmp_path: Path) -> None:
    scene = Scene(finished_run(tmp_path, permute="none"), images=24)
    found = findings(scene, "decoder", tmp_path, epochs=1)[""]
    assert psnr(found.images, scene.truth.images) > 30


def test_a_fresh_permutation_stops_the_decoder_and_a_fixed_one_does_not(tmp_path: Path) -> None:
    """The decoder learns under the same lasting permutation, so that hides nothing."""
    values = {}
    for rotation in ("sample", "fixed"):
        scene = Scene(finished_run(tmp_path / rotation, rotation=rotation), images=24)
        found = findings(scene, "decoder", tmp_path / rotation / "shop", epochs=6)[""]
        values[rotation] = psnr(found.images, scene.truth.images)
    assert values["fixed"] > values["sample"] + 2


def test_positions_in_the_tokens_give_the_permutation_away(tmp_path: Path) -> None:
    scene = Scene(finished_run(tmp_path), images=24)
    found = findings(scene, "position", tmp_path, epochs=3)
    assert set(found) == {"per-token", "set", "best"}
    assert placed(found["best"], scene) > 0.95
    assert psnr(found["best"].images, scene.truth.images) > 25


def test_jigsaw_finds_places_without_positions(tmp_path: Path) -> None:
    scene = Scene(finished_run(tmp_path, edge_position="none"), images=24)
    found = findings(scene, "jigsaw", tmp_path, epochs=5)[""]
    assert placed(found, scene) > 3 / 16


@pytest.mark.parametrize("permute", ["none", "row"])
def test_descent_comes_near_from_any_start(tmp_path: Path, permute: str) -> None:
    scene = Scene(finished_run(tmp_path, permute=permute, cut=1), images=8)
    found = findings(scene, "optimise", tmp_path)[""]
    mean = scene.auxiliary.images.mean(axis=0) / 255
    floor = torch.from_numpy(mean).float().permute(2, 0, 1).expand_as(scene.truth.images)
    assert psnr(found.images, scene.truth.images) > psnr(floor, scene.truth.images) + 3


def test_attributes_do_not_care_for_the_order(tmp_path: Path) -> None:
    """The classifier is invariant: permuted and plain smashed data get the same answers."""
    scene = Scene(finished_run(tmp_path), images=24)
    from attacking import workshop

    from attacks import ATTACKERS
    from attacks.threat import TOLD_ORDER

    attacker = ATTACKERS["attributes"](scene.view(TOLD_ORDER), workshop(tmp_path, epochs=1))
    attacker.learn()
    (permuted,) = attacker.attack()
    view = attacker.view
    view.smashed = permute_rows(view.smashed, invert(view.orders))
    (plain,) = attacker.attack()
    assert permuted.scores is not None
    assert plain.scores is not None
    torch.testing.assert_close(permuted.scores, plain.scores, atol=1e-4, rtol=1e-4)
