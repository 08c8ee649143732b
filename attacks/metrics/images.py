# SPDX-License-Identifier: Apache-2.0
"""All metrics of reconstructions by name, and the images that serve as floors."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attacks.errors import AttackError
from attacks.metrics.faces import FaceEmbedder, f_sim
from attacks.metrics.perceptual import LPIPS_SIDE, lpips_distance, lpips_network
from attacks.metrics.result import MetricResult, mean_result
from attacks.metrics.similarity import (
    PAPER_WINDOW,
    WINDOW,
    psnr,
    psnr_paper,
    ssim,
    ssim_paper,
)

__all__ = [
    "IMAGE_METRICS",
    "check_metrics",
    "mean_image",
    "metrics_of",
    "random_other",
    "score_reconstructions",
]

IMAGE_METRICS: dict[str, Callable[[Tensor, Tensor], NDArray[np.float64]]] = {
    "ssim": ssim,
    "psnr": psnr,
    "ssim_paper": ssim_paper,
    "psnr_paper": psnr_paper,
    "lpips": lpips_distance,
}
"""To add a metric, write its file and add a line here. ``f_sim`` needs a network besides."""

SMALLEST_SIDE = {"ssim": WINDOW, "ssim_paper": PAPER_WINDOW, "lpips": LPIPS_SIDE}
"""Pixels that a metric needs along each side; 1 where it is not listed."""

NETWORKS: dict[str, Callable[[], object]] = {"lpips": lpips_network}
"""What a metric loads, so that it can be found missing before anything is computed."""

ROUNDING = 1e-4
"""How far beyond [0, 1] a value may lie by rounding."""


def metrics_of(names: str) -> list[str]:
    """The metrics of a comma list, each once.

    Raises
    ------
    AttackError
        If one is unknown, or there is none.
    """
    wanted = list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    unknown = [name for name in wanted if name not in IMAGE_METRICS]
    if unknown or not wanted:
        what = f"unknown: {', '.join(unknown)}" if unknown else "none is named"
        raise AttackError(f"{what}; allowed is a comma list of {', '.join(IMAGE_METRICS)}")
    return wanted


def check_metrics(names: Sequence[str], side: int) -> None:
    """Find out whether images of ``side`` pixels can be scored by these metrics here.

    Raises
    ------
    AttackError
        If they are too small, or what a metric needs is not to be had.
    """
    for name in names:
        _check_side(name, (side, side))
        NETWORKS.get(name, lambda: None)()


def score_reconstructions(
    originals: Tensor,
    reconstructions: Tensor,
    *,
    metrics: Sequence[str],
    seed: int,
    embedder: FaceEmbedder | None = None,
) -> list[MetricResult]:
    """Score reconstructions by metrics of these names.

    Parameters
    ----------
    originals, reconstructions : Tensor
        [M, 3, H, W] in [0, 1], on any device.
    metrics : sequence of str
        Keys of ``IMAGE_METRICS``, or ``"f_sim"``.
    seed : int
        Of the bootstrap.
    embedder : FaceEmbedder, optional
        The face network of ``f_sim``; its name is written in the result.

    Raises
    ------
    AttackError
        If a metric is unknown, ``f_sim`` has no embedder, or the images do not pair, are too small,
        not finite or outside [0, 1]: before anything is computed.
    """
    originals, reconstructions = originals.detach().cpu(), reconstructions.detach().cpu()
    for name in metrics:
        if name not in IMAGE_METRICS and not (name == "f_sim" and embedder is not None):
            allowed = ", ".join([*IMAGE_METRICS, "f_sim (with a face network)"])
            raise AttackError(f"metric {name!r}: allowed are {allowed}")
    _check_images(originals, reconstructions, metrics)
    results = []
    for name in metrics:
        if name == "f_sim" and embedder is not None:
            values = f_sim(originals, reconstructions, embedder)
            results.append(mean_result(name, values, seed, embedder.name))
        else:
            values = IMAGE_METRICS[name](originals, reconstructions)
            results.append(mean_result(name, values, seed, "alex" if name == "lpips" else ""))
    return results


def _check_images(originals: Tensor, reconstructions: Tensor, metrics: Sequence[str]) -> None:
    """Refuse what would be broadcast, or scored as a number that means nothing."""
    shape = tuple(originals.shape)
    if len(shape) != 4 or shape[1] != 3 or not all(shape):
        raise AttackError(f"originals: shape is {shape}; allowed is [M, 3, H, W], none of them 0")
    if reconstructions.shape != originals.shape:
        raise AttackError(
            f"reconstructions: shape is {tuple(reconstructions.shape)}; allowed is the originals' "
            f"{shape}"
        )
    for name in metrics:
        _check_side(name, shape[2:])
    for what, images in (("originals", originals), ("reconstructions", reconstructions)):
        if not bool(torch.isfinite(images).all()):
            raise AttackError(f"{what}: some values are not finite; allowed are values in [0, 1]")
        low, high = float(images.min()), float(images.max())
        if low < -ROUNDING or high > 1 + ROUNDING:
            raise AttackError(
                f"{what}: values are from {low:.4g} to {high:.4g}; allowed are values in [0, 1]"
            )


def _check_side(metric: str, shape: Sequence[int]) -> None:
    side = SMALLEST_SIDE.get(metric, 1)
    if min(shape) < side:
        raise AttackError(
            f"metric {metric}: images are {shape[0]} x {shape[1]}; allowed are sides of {side} "
            "pixels or more"
        )


def mean_image(auxiliary: Tensor) -> Tensor:
    """The mean ``[1, 3, H, W]`` of images ``[A, 3, H, W]``: a floor for every reconstruction."""
    _check_auxiliary(auxiliary)
    return auxiliary.mean(dim=0, keepdim=True)


def random_other(auxiliary: Tensor, count: int, *, seed: int) -> Tensor:
    """``count`` images of other people, drawn with replacement, ``[count, 3, H, W]``.

    Auxiliary images share no identity with the victims, so none is of the victim it stands for.
    """
    _check_auxiliary(auxiliary)
    rows = np.random.default_rng(seed).integers(0, len(auxiliary), size=count)
    return auxiliary[rows]


def _check_auxiliary(auxiliary: Tensor) -> None:
    if not len(auxiliary):
        raise AttackError("auxiliary images: there are 0; allowed are 1 or more")
