# SPDX-License-Identifier: Apache-2.0
"""How alike two images are: SSIM and PSNR, and both in the convention of the paper's code.

Images are ``[M, 3, H, W]`` in [0, 1]; each function gives one value per image, ``[M]``.
"""

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from attacks.errors import AttackError

__all__ = ["PAPER_WINDOW", "PSNR_CAP", "WINDOW", "psnr", "psnr_paper", "ssim", "ssim_paper"]

PSNR_CAP = 100.0
"""What counts for identical images, whose PSNR is infinite, so that means stay finite (dB)."""

WINDOW, PAPER_WINDOW = 7, 11


def ssim(originals: Tensor, reconstructions: Tensor) -> NDArray[np.float64]:
    """Structural similarity by scikit-image: 7 x 7 window, data range 1.

    Raises
    ------
    AttackError
        If images are smaller than the window.
    """
    return _each(originals, reconstructions, WINDOW, data_range=1.0)


def ssim_paper(originals: Tensor, reconstructions: Tensor) -> NDArray[np.float64]:
    """SSIM as the paper's code has it: images in [-1, 1] with data range 1, where it should be 2.

    That code uses ``pytorch_msssim.SSIM(data_range=1)``: with x, y in [-1, 1], for each channel the
    mean over all whole 11 x 11 windows, Gaussian with sigma 1.5, of

        (2 mx my + c1) (2 cov + c2) / ((mx^2 + my^2 + c1) (vx + vy + c2)),

    c1 = 0.01^2, c2 = 0.03^2, population variances; then the mean over channels. The right range
    has constants four times as large, and [0, 1] has other means: the values do not convert.
    """
    return _each(
        2 * originals - 1,
        2 * reconstructions - 1,
        PAPER_WINDOW,
        data_range=1.0,
        gaussian_weights=True,
        sigma=1.5,
        use_sample_covariance=False,
    )


def psnr(originals: Tensor, reconstructions: Tensor) -> NDArray[np.float64]:
    """Peak signal-to-noise ratio in dB, 10 log10(1 / MSE) on [0, 1]; at most ``PSNR_CAP``."""
    return _decibel(_squared_error(originals, reconstructions))


def psnr_paper(originals: Tensor, reconstructions: Tensor) -> NDArray[np.float64]:
    """PSNR as the paper's code has it: 20 log10(1 / RMSE), peak 1 on images in [-1, 1].

    That is 20 log10(2) = 6.02 dB lower than ``psnr`` (where the cap does not bind). That code takes
    one error for a batch and averages over batches; here each image is its own batch, so that the
    value does not depend on the batch size. By Jensen's inequality it reads a little higher.
    """
    return _decibel(4 * _squared_error(originals, reconstructions))


def _each(
    originals: Tensor, reconstructions: Tensor, window: int, **options: object
) -> NDArray[np.float64]:
    from skimage.metrics import structural_similarity

    if min(originals.shape[-2:]) < window:
        height, width = originals.shape[-2:]
        raise AttackError(
            f"image {height} x {width}: SSIM takes images of {window} pixels at least"
        )
    pairs = zip(originals.double().numpy(), reconstructions.double().numpy(), strict=True)
    return np.array([structural_similarity(a, b, channel_axis=0, **options) for a, b in pairs])


def _squared_error(originals: Tensor, reconstructions: Tensor) -> NDArray[np.float64]:
    error: Tensor = (originals.double() - reconstructions.double()).square().mean(dim=(1, 2, 3))
    values: NDArray[np.float64] = error.numpy()
    return values


def _decibel(error: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        values: NDArray[np.float64] = np.minimum(-10 * np.log10(error), PSNR_CAP)
    return values
