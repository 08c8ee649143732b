# SPDX-License-Identifier: Apache-2.0
"""SSIM and PSNR against the formulas, written out."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from attacks import AttackError
from attacks.metrics import IMAGE_METRICS, mean_image, random_other, score_reconstructions
from attacks.metrics.similarity import PSNR_CAP, psnr, psnr_paper, ssim, ssim_paper


def images(seed: int, count: int = 3, side: int = 16) -> torch.Tensor:
    return torch.rand(count, 3, side, side, generator=torch.Generator().manual_seed(seed))


def windowed_ssim(a: NDArray[np.float64], b: NDArray[np.float64], kernel: NDArray[np.float64],
                  unbias: float) -> float:  # fmt: skip
    """Mean over all whole windows of the formula of Wang et al. for data range 1."""
    size, values = len(kernel), []
    for channel_a, channel_b in zip(a, b, strict=True):
        for top in range(a.shape[1] - size + 1):
            for left in range(a.shape[2] - size + 1):
                x = channel_a[top : top + size, left : left + size]
                y = channel_b[top : top + size, left : left + size]
                mx, my = (kernel * x).sum(), (kernel * y).sum()
                vx = unbias * ((kernel * x * x).sum() - mx**2)
                vy = unbias * ((kernel * y * y).sum() - my**2)
                cov = unbias * ((kernel * x * y).sum() - mx * my)
                c1, c2 = 0.01**2, 0.03**2
                values.append(
                    (2 * mx * my + c1) * (2 * cov + c2) / ((mx**2 + my**2 + c1) * (vx + vy + c2))
                )
    return float(np.mean(values))


def test_ssim_is_the_formula_with_a_plain_window() -> None:
    a, b = images(0), (images(0) + 0.3 * images(1)).clamp(0, 1)
    expected = [
        windowed_ssim(x, y, np.full((7, 7), 1 / 49), 49 / 48)
        for x, y in zip(a.double().numpy(), b.double().numpy(), strict=True)
    ]
    np.testing.assert_allclose(ssim(a, b), expected, rtol=1e-6)


def test_ssim_of_the_paper_is_the_formula_with_a_gaussian_window_on_wide_images() -> None:
    a, b = images(2), (images(2) + 0.3 * images(3)).clamp(0, 1)
    line = np.exp(-(np.arange(-5, 6) ** 2) / (2 * 1.5**2))
    kernel = np.outer(line, line) / line.sum() ** 2
    expected = [
        windowed_ssim(2 * x - 1, 2 * y - 1, kernel, 1.0)
        for x, y in zip(a.double().numpy(), b.double().numpy(), strict=True)
    ]
    np.testing.assert_allclose(ssim_paper(a, b), expected, rtol=1e-6)


def test_psnr_and_that_of_the_paper_by_hand() -> None:
    a, b = torch.zeros(1, 3, 8, 8), torch.full((1, 3, 8, 8), 0.1)
    assert psnr(a, b)[0] == pytest.approx(20.0, abs=1e-4)
    # On [-1, 1] the difference is 0.2: 20 log10(1 / 0.2).
    assert psnr_paper(a, b)[0] == pytest.approx(20 * math.log10(5), abs=1e-4)
    assert psnr(a, a)[0] == PSNR_CAP


@pytest.mark.parametrize("name", ["ssim", "psnr", "ssim_paper", "psnr_paper"])
def test_values_do_not_depend_on_the_batch(name: str) -> None:
    metric, a, b = IMAGE_METRICS[name], images(4, 5), images(5, 5)
    apart = np.concatenate([metric(a[i : i + 1], b[i : i + 1]) for i in range(5)])
    np.testing.assert_array_equal(metric(a, b), apart)


def test_small_images_are_refused_clearly() -> None:
    with pytest.raises(ValueError, match="6 x 6: SSIM takes images of 7 pixels"):
        ssim(images(0, side=6), images(1, side=6))


def test_scores_have_an_interval_that_a_seed_fixes() -> None:
    a, b = images(6, 20), images(7, 20)
    (first,) = score_reconstructions(a, b, metrics=["psnr"], seed=3)
    (again,) = score_reconstructions(a, b, metrics=["psnr"], seed=3)
    assert first == again
    assert first.low < first.value < first.high
    assert first.value == pytest.approx(psnr(a, b).mean())
    assert first.count == 20


def test_an_unknown_metric_is_an_error() -> None:
    for name in ("sim", "f_sim"):
        with pytest.raises(AttackError, match=f"metric '{name}': allowed are ssim, psnr"):
            score_reconstructions(images(0), images(1), metrics=[name], seed=0)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (torch.zeros(1, 3, 16, 16), "shape is .1, 3, 16, 16.; allowed is the originals'"),
        (torch.full((3, 3, 16, 16), torch.nan), "some values are not finite"),
        (torch.full((3, 3, 16, 16), -0.5), "values are from -0.5 to -0.5"),
    ],
)
def test_reconstructions_that_cannot_be_scored_are_refused(made: torch.Tensor, said: str) -> None:
    with pytest.raises(AttackError, match=f"reconstructions: {said}"):
        score_reconstructions(images(0), made, metrics=["psnr"], seed=0)


def test_images_too_small_for_one_metric_are_refused_before_any_is_computed() -> None:
    small = images(0, side=8)
    with pytest.raises(AttackError, match=r"metric ssim_paper: images are 8 x 8; .* of 11"):
        score_reconstructions(small, small, metrics=["ssim", "ssim_paper"], seed=0)
    assert score_reconstructions(small, small, metrics=["ssim"], seed=0)[0].value == 1.0


def test_no_auxiliary_image_is_an_error() -> None:
    for floor in (mean_image, lambda none: random_other(none, 2, seed=0)):
        with pytest.raises(AttackError, match="auxiliary images: there are 0"):
            floor(torch.zeros(0, 3, 8, 8))


def test_floors_are_the_mean_and_others() -> None:
    auxiliary = images(8, 4)
    torch.testing.assert_close(mean_image(auxiliary)[0], auxiliary.sum(dim=0) / 4)
    drawn = random_other(auxiliary, 10, seed=1)
    assert all(any(torch.equal(one, known) for known in auxiliary) for one in drawn)
    assert torch.equal(drawn, random_other(auxiliary, 10, seed=1))
