# SPDX-License-Identifier: Apache-2.0
"""LPIPS, with a random AlexNet so that nothing is fetched."""

import sys
from functools import partial

import pytest
import torch

from attacks import AttackError
from attacks.metrics import score_reconstructions
from attacks.metrics.perceptual import lpips_network
from split.seeds import seeded


@pytest.fixture(autouse=True)
def no_network_of_another_test() -> None:
    lpips_network.cache_clear()


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lpips", None)
    images = torch.zeros(1, 3, 32, 32)
    with pytest.raises(AttackError, match=r"permsplit\[lpips\]"):
        score_reconstructions(images, images, metrics=["lpips"], seed=0)


def test_weights_that_cannot_be_fetched_are_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    lpips = pytest.importorskip("lpips")

    def offline(**options: object) -> None:
        raise OSError("no route")

    monkeypatch.setattr(lpips, "LPIPS", offline)
    images = torch.zeros(1, 3, 32, 32)
    with pytest.raises(AttackError, match="weights cannot be fetched: no route"):
        score_reconstructions(images, images, metrics=["lpips"], seed=0)


def test_distance_is_0_for_equal_images_only(monkeypatch: pytest.MonkeyPatch) -> None:
    lpips = pytest.importorskip("lpips")
    monkeypatch.setattr(lpips, "LPIPS", partial(lpips.LPIPS, pnet_rand=True))
    generator = torch.Generator().manual_seed(0)
    a, b = torch.rand(2, 2, 3, 31, 31, generator=generator)
    with seeded(0):
        (same,) = score_reconstructions(a, a, metrics=["lpips"], seed=0)
        (other,) = score_reconstructions(a, b, metrics=["lpips"], seed=0)
    assert same.value == 0 < other.low
    assert (same.embedder, same.count) == ("alex", 2)


def test_small_images_are_refused() -> None:
    images = torch.zeros(1, 3, 30, 30)
    with pytest.raises(AttackError, match="metric lpips: images are 30 x 30; allowed are sides of"):
        score_reconstructions(images, images, metrics=["lpips"], seed=0)
