# SPDX-License-Identifier: Apache-2.0
"""The paper's Table 6, setting by setting and attacker by attacker, beside the paper's numbers."""

from typing import Any

import pandas as pd

from reports.paper import paper_row
from reports.settings import Setting
from reports.study import IMAGE_METRICS, Study, groups

PAPER_ATTACKER = "decoder"
"""The attacker of the paper: only its rows stand beside the paper's numbers."""

PARTS = {"": "value", "_spread": "spread", "_low": "low", "_high": "high",
         "_mean_image": "floor_mean_image", "_random_image": "floor_random_image",
         "_untrained": "floor_untrained"}  # fmt: skip
UTILITY = ["family", "strength", "permute", "other", "accuracy", "accuracy_spread"]
WAY = ["attack", "variant", "threat"]
PAPER = ["paper_accuracy", "paper_ssim", "paper_psnr", "paper_f_sim"]
COLUMNS = [
    "setting", *UTILITY, *WAY, *(f"{m}{part}" for m in IMAGE_METRICS for part in PARTS), "repeats",
    *PAPER,
]  # fmt: skip


def table6(study: Study) -> pd.DataFrame:
    """A row a setting and way of an attacker; upper bounds are rows too.

    Returns
    -------
    DataFrame
        ``setting``, ``family``, ``strength``, ``permute``, ``other``; ``accuracy`` (0 .. 1) and
        ``accuracy_spread``; ``attack``, ``variant``, ``threat``; for each of ssim, psnr, f_sim,
        lpips, ssim_paper and psnr_paper the mean over repeats, its ``_spread`` (standard deviation,
        NaN for one), its interval ``_low`` and ``_high``, and its floors ``_mean_image``,
        ``_random_image`` and ``_untrained``; ``repeats``; and, in rows of the paper's attacker,
        ``paper_accuracy``, ``paper_ssim``, ``paper_psnr`` and ``paper_f_sim``, which compare to
        ``accuracy``, ``ssim_paper``, ``psnr_paper`` and ``f_sim``. Sorted by setting: SL, GN,
        LP, BS, each without and then with permutation.
    """
    images = study.results[study.results["metric"].isin(IMAGE_METRICS)]
    rows = []
    for setting in study.settings:
        mine = images[images["setting"] == setting.label]
        utility: dict[Any, Any] = study.utility.loc[setting.label, UTILITY].to_dict()
        for (attack, variant, threat), way in groups(mine, WAY):
            row = {"setting": setting.label, **utility, "attack": attack, "variant": variant}
            paper = _paper(setting) if attack == PAPER_ATTACKER else {}
            repeats = int(way["repeats"].max())
            rows.append({**row, "threat": threat, **_measures(way), "repeats": repeats, **paper})
    table = pd.DataFrame(rows, columns=COLUMNS)
    measured = [name for name in COLUMNS if name not in ("setting", *UTILITY[:4], *WAY, "repeats")]
    return table.astype(dict.fromkeys(measured, "float64"))


def _measures(way: pd.DataFrame) -> dict[str, float]:
    return {
        f"{row['metric']}{part}": row[column]
        for row in way.to_dict("records")
        for part, column in PARTS.items()
    }


def _paper(setting: Setting) -> dict[str, float]:
    row = paper_row(setting)
    if row is None:
        return {}
    return dict(zip(PAPER, (row.accuracy, row.ssim, row.psnr, row.f_sim), strict=True))
