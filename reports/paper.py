# SPDX-License-Identifier: Apache-2.0
"""The paper's numbers on CelebA, to stand beside one's own.

Xu, Xiang, Ye, Yao, Chu, Li: "Permutation Equivariance of Transformers and Its Applications", CVPR
2024 (arXiv 2304.07735), Table 6 and Figure 7. ViT-B/16 at 224 px with ImageNet weights; single
numbers without seeds or intervals. Its SSIM and PSNR are computed on [-1, 1] images with a range of
1, so only the columns ``ssim_paper`` and ``psnr_paper`` may be set beside them.
"""

from dataclasses import dataclass

from reports.settings import Setting

SOURCE = "Xu et al., CVPR 2024, Table 6"


@dataclass(frozen=True)
class PaperRow:
    """One row of the paper's Table 6; ``accuracy`` is 0 .. 1, ``psnr`` in dB by its convention."""

    accuracy: float
    ssim: float
    psnr: float
    f_sim: float


TABLE_6: dict[tuple[str, str], PaperRow] = {
    ("SL", "none"): PaperRow(0.919, 0.645, 16.25, 0.933),
    ("GN", "none"): PaperRow(0.888, 0.457, 15.47, 0.663),
    ("GN", "row"): PaperRow(0.888, 0.167, 8.07, 0.187),
    ("LP", "none"): PaperRow(0.901, 0.450, 14.71, 0.614),
    ("LP", "row"): PaperRow(0.902, 0.110, 5.69, 0.154),
    ("BS", "none"): PaperRow(0.908, 0.148, 8.18, 0.176),
    ("BS", "row"): PaperRow(0.911, 0.143, 7.61, 0.167),
}
"""By family and permutation. The paper has no row for SL with row permutation alone, and does not
tell the sigma of GN nor the k of BS; LP is at radius 0.05."""

LP_RADIUS = 0.05

LP_ACCURACY: dict[float, float] = {0.01: 0.856, 0.02: 0.880, 0.03: 0.891, 0.04: 0.897, 0.05: 0.901}
"""Accuracy (0 .. 1) of LP without permutation by radius, from Figure 7."""


def paper_row(setting: Setting) -> PaperRow | None:
    """The paper's row that a setting can stand beside: same family, same permutation.

    A low-pass filter must have the paper's radius; sigma of GN and k of BS are not known, so any
    strength stands beside them. A setting that differs in further keys has no such row.
    """
    if setting.other:
        return None
    if setting.family == "LP" and not _is_radius(setting.strength, LP_RADIUS):
        return None
    return TABLE_6.get((setting.family, setting.permute))


def _is_radius(strength: str, radius: float) -> bool:
    try:
        return abs(float(strength) - radius) < 1e-9
    except ValueError:
        return False
