# SPDX-License-Identifier: Apache-2.0
"""Tables of attacks for people: values with their spread, beside their floors."""

from collections.abc import Iterable
from math import isnan

import pandas as pd

from reports.display import MISSING, cell, signed_percent
from reports.settings import Setting
from reports.study import Study, way_name

METRICS = {
    "ssim": "SSIM", "psnr": "PSNR (dB)", "f_sim": "F-SIM", "lpips": "LPIPS",
    "ssim_paper": "SSIM, paper's way", "psnr_paper": "PSNR, paper's way (dB)",
    "position_accuracy": "position accuracy", "accuracy": "attribute accuracy",
    "balanced_accuracy": "attribute balanced accuracy", "auc": "attribute AUC",
}  # fmt: skip
FLOORS = {"mean image": "floor_mean_image", "random image": "floor_random_image",
          "untrained": "floor_untrained", "chance": "floor_chance"}  # fmt: skip
ALL = -1
"""In the column ``client``: the victims are images of all clients."""

PAPER = {
    "paper: accuracy %": ("paper_accuracy", 100.0, 1),
    "paper: SSIM": ("paper_ssim", 1.0, 3),
    "paper: PSNR (dB)": ("paper_psnr", 1.0, 2),
    "paper: F-SIM": ("paper_f_sim", 1.0, 3),
}


def value_text(value: float, metric: str, spread: float = float("nan")) -> str:
    """A value, with ``± spread`` if there is one: two digits of dB, three of anything else."""
    return _text(value, 2 if metric.startswith("psnr") else 3, spread)


def percent_text(share: float, spread: float = float("nan")) -> str:
    """A share of 0 .. 1 in percent, with ``± spread`` if there is one."""
    return _text(100 * share, 2, 100 * spread)


def rows_as_text(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of an attack table one by one: who, what, interval, all floors, images.

    Whose images they are is said if that differs.
    """
    metrics = [
        f"{METRICS.get(metric, metric)} ({embedder})" if embedder else METRICS.get(metric, metric)
        for metric, embedder in zip(table["metric"], table["embedder"], strict=True)
    ]
    shown: dict[str, Iterable[str]] = {
        "attacker": _ways(table),
        "knows": table["threat"],
        "metric": metrics,
        "value": _cells(table, "value"),
        "95 % interval": _intervals(table),
        **{heading: _cells(table, column) for heading, column in FLOORS.items()},
        "images": [f"{count:,}" for count in table["count"]],
    }
    if table["client"].nunique() > 1:
        shown["of"] = ["all clients" if c == ALL else f"client {c}" for c in table["client"]]
    return _told(pd.DataFrame({name: list(cells) for name, cells in shown.items()}, dtype="object"))


def table6_as_text(table: pd.DataFrame, attack: str) -> pd.DataFrame:
    """The rows of one attacker in :func:`reports.table6.table6`, without unmeasured columns."""
    rows = table[table["attack"] == attack]
    shown: dict[str, list[str]] = {"setting": list(rows["setting"])}
    if len(rows[["variant", "threat"]].drop_duplicates()) > 1:
        shown["way"] = [way.removeprefix(f"{attack}, ") for way in _ways(rows)]
    pairs = zip(rows["accuracy"], rows["accuracy_spread"], strict=True)
    shown["accuracy %"] = [percent_text(value, spread) for value, spread in pairs]
    for metric in ("ssim", "psnr", "f_sim", "lpips", "ssim_paper", "psnr_paper"):
        pairs = zip(rows[metric], rows[f"{metric}_spread"], strict=True)
        shown[METRICS[metric]] = [value_text(value, metric, spread) for value, spread in pairs]
    for metric in ("ssim", "psnr"):
        floors = rows[f"{metric}_mean_image"]
        shown[f"mean image: {METRICS[metric]}"] = [value_text(value, metric) for value in floors]
    shown["untrained: SSIM"] = [value_text(value, "ssim") for value in rows["ssim_untrained"]]
    for heading, (column, scale, digits) in PAPER.items():
        shown[heading] = [_text(scale * value, digits) for value in rows[column]]
    return _told(pd.DataFrame(shown, dtype="object"))


def side_by_side(study: Study, metric: str) -> pd.DataFrame:
    """One metric: a row a setting, a column an attacker by its strongest way, and the floors.

    The floor of the untrained attacker, which is each attacker's own, is not among them.
    """
    found = study.strongest(metric)
    attackers = list(dict.fromkeys(found["attack"]))
    rows = []
    for setting in study.settings:
        mine = found[found["setting"] == setting.label]
        row = {"setting": setting.label, "accuracy %": percent_text(*study.accuracy(setting))}
        row |= dict.fromkeys(attackers, MISSING)
        for attack, value, spread in zip(
            mine["attack"], mine["value"], mine["spread"], strict=True
        ):
            row[attack] = value_text(value, metric, spread)
        for heading in ("mean image", "random image", "chance"):
            row[f"({heading})"] = value_text(float(mine[FLOORS[heading]].mean()), metric)
        rows.append(row)
    return _told(pd.DataFrame(rows, dtype="object"))


def permutation_effect(study: Study, metric: str = "ssim") -> pd.DataFrame:
    """What row permutation does to utility and to each attacker: settings with and without it.

    Columns ``setting`` (without the permutation), ``accuracy %`` of both and their difference in
    points, then for each attacker the metric without -> with. Settings that lack a partner are left
    out.
    """
    rows_of = study.strongest(metric)
    attackers = list(dict.fromkeys(rows_of["attack"]))
    found = rows_of.set_index(["setting", "attack"])["value"].to_dict()
    rows = []
    for bare, permuted in _partners(study):
        one, two = (study.accuracy(setting)[0] for setting in (bare, permuted))
        row = {
            "setting": _pair_name(bare, permuted),
            "accuracy %, without": percent_text(one),
            "with row": percent_text(two),
            "difference, points": cell(two - one, signed_percent),
        }
        for attack in attackers:
            both = [
                found.get((setting.label, attack), float("nan")) for setting in (bare, permuted)
            ]
            row[attack] = " → ".join(value_text(value, metric) for value in both)
        rows.append(row)
    return pd.DataFrame(rows, dtype="object")


def _pair_name(bare: Setting, permuted: Setting) -> str:
    return bare.label if bare.keys == permuted.keys else f"{bare.label}; {permuted.label}"


def _partners(study: Study) -> list[tuple[Setting, Setting]]:
    """Settings without and with row permutation that are alike otherwise.

    What matters only under a permutation, such as its rotation, is no difference.
    """
    pairs = []
    for bare in (setting for setting in study.settings if setting.permute == "none"):
        for other in study.settings:
            same = (bare.family, bare.strength) == (other.family, other.strength)
            if same and other.permute == "row" and bare.common(other):
                pairs.append((bare, other))
    return pairs


def _ways(table: pd.DataFrame) -> list[str]:
    columns = (table["attack"], table["variant"], table["threat"])
    return [way_name(*way) for way in zip(*columns, strict=True)]


def _cells(table: pd.DataFrame, column: str) -> list[str]:
    return [value_text(v, m) for v, m in zip(table[column], table["metric"], strict=True)]


def _intervals(table: pd.DataFrame) -> list[str]:
    pairs = zip(_cells(table, "low"), _cells(table, "high"), strict=True)
    return [MISSING if low == MISSING else f"{low} .. {high}" for low, high in pairs]


def _told(table: pd.DataFrame) -> pd.DataFrame:
    """Without the columns in which nothing was measured."""
    return table.drop(columns=[name for name in table.columns if (table[name] == MISSING).all()])


def _text(value: float, digits: int, spread: float = float("nan")) -> str:
    if isnan(value):
        return cell(value)
    return f"{value:.{digits}f}" + ("" if isnan(spread) else f" ± {spread:.{digits}f}")
