# SPDX-License-Identifier: Apache-2.0
"""At cut 0 the tokens are linear images of patches, and algebra takes them back."""

import math
from pathlib import Path

import pytest
import torch
from attacking import findings, placed, psnr
from finished import finished_run

from attacks import AttackError, Scene
from attacks.assess import check_attack
from attacks.attacker import AttackOptions
from attacks.patch_prior import PatchPrior
from attacks.threat import KNOWN_EDGE, TOLD_ORDER


@pytest.mark.parametrize("keys", [
    {"permute": "none"}, {"permute": "row"}, {"permute": "row+column"},
    {"permute": "row", "permute_cls": True, "return_": "all"},
], ids=str)  # fmt: skip
def test_without_a_defence_everything_comes_back(tmp_path: Path, keys: dict[str, object]) -> None:
    scene = Scene(finished_run(tmp_path, **keys), images=24)
    found = findings(scene, "analytic", tmp_path)
    assert placed(found["inverse"], scene) == 1.0
    for way in ("inverse", "posterior"):
        assert psnr(found[way].images, scene.truth.images) > 40


def test_without_positions_the_told_order_is_enough(tmp_path: Path) -> None:
    scene = Scene(finished_run(tmp_path, edge_position="none"), images=24)
    told = findings(scene, "analytic", tmp_path, TOLD_ORDER)["inverse"]
    untold = findings(scene, "analytic", tmp_path, KNOWN_EDGE)["inverse"]
    assert psnr(told.images, scene.truth.images) > 40
    assert placed(untold, scene) < 0.9


@pytest.mark.parametrize("sigma", [0.05, 0.2])
def test_noise_degrades_it_as_the_algebra_says(tmp_path: Path, sigma: float) -> None:
    """W+ (W (x + n) + b + p) = x + W+ W n = x + n for a square W: the error is the noise itself."""
    scene = Scene(finished_run(tmp_path, permute="none", defences=f"gn:{sigma}"), images=60)
    view = scene.view(TOLD_ORDER)
    prior = PatchPrior(view, torch.arange(len(scene.auxiliary.images)).numpy())
    patches = prior.inverse(view.smashed[:, 1:])
    truth = PatchPrior(
        Scene(finished_run(tmp_path / "plain", permute="none"), images=60).view(TOLD_ORDER),
        torch.arange(8).numpy(),
    ).inverse(_plain_tokens(tmp_path / "again"))
    error = (patches - truth).square().mean()
    # 60 images of 768 values: the sample variance is within 4 deviations of sigma squared.
    values = patches.numel()
    assert float(error) == pytest.approx(sigma**2, rel=4 * math.sqrt(2 / values))


def _plain_tokens(folder: Path) -> torch.Tensor:
    scene = Scene(finished_run(folder, permute="none"), images=60)
    return scene.traffic[0][:, 1:]


def test_knowing_the_noise_helps(tmp_path: Path) -> None:
    scene = Scene(finished_run(tmp_path, permute="none", defences="gn:0.5"), images=60)
    found = findings(scene, "analytic", tmp_path)
    inverse, posterior = (psnr(found[w].images, scene.truth.images) for w in found)
    assert posterior > inverse + 2


def test_prefix_tokens_that_look_alike_get_a_place_each(tmp_path: Path) -> None:
    """With noise a token may be the likeliest CLS token and the likeliest register at once."""
    keys = {"model": "vit_small_patch14_reg4_dinov2", "permute_cls": True, "return_": "all"}
    scene = Scene(finished_run(tmp_path, defences="gn:0.5", **keys), images=24)
    assert scene.geometry.prefix == 5
    places = findings(scene, "analytic", tmp_path)["inverse"].places
    assert places is not None
    assert torch.equal(places.sort(dim=1).values, torch.arange(21).expand(24, -1))


def test_it_takes_only_cut_0(tmp_path: Path) -> None:
    run = finished_run(tmp_path, cut=1)
    with pytest.raises(AttackError, match="analytic takes cut = 0"):
        check_attack(run, ["analytic"], AttackOptions())
