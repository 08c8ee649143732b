# SPDX-License-Identifier: Apache-2.0
"""Reconstruction grids: originals in the first row, what attackers made of them below."""

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.figure import Figure

from reports.reconstructions import Images, Reconstructions, attacks_with_pictures, reconstructions
from reports.run_folder import RunFolder
from reports.settings import settings
from reports.study import Study

COLUMNS = 8
SIDE, LETTER, ENLARGED = 0.86, 0.072, 128
"""Inches of an image and of a letter beside it; pixels to which an image is enlarged."""

CHOSEN = "best"
"""An attacker's own choice among its ways; it repeats one of them."""

Row = tuple[str, Images]


def run_pictures(run: RunFolder) -> Figure | None:
    """One run: a row for each way of each attacker; None without pictures."""
    rows: list[Row] = []
    shown: Images | None = None
    for attack in attacks_with_pictures(run):
        found = reconstructions(run, attack)
        assert found is not None
        if shown is None or not _same(shown, found.original):
            shown = found.original
            rows.append(("original", shown))
        for way, images in found.ways.items():
            if way.split(", ")[0] != CHOSEN or len(found.ways) == 1:
                name = f"{attack}, {way}" if way else attack
                rows.append((name + _ssim(found, way), images))
    return picture_grid(rows) if rows else None


def study_pictures(study: Study, attack: str) -> Figure | None:
    """One attacker over the settings: a row each, by the way that is its own choice or its best.

    Settings whose victims are not those of the first have no row; None without pictures.
    """
    rows: list[Row] = []
    strongest = study.strongest("ssim")
    mine = strongest[strongest["attack"] == attack].set_index("setting").to_dict("index")
    for label, found in _of_settings(study, attack):
        if rows and not _same(rows[0][1], found.original):
            continue
        if not rows:
            rows.append(("original", found.original))
        own = mine.get(label)
        way = _way(found, str(own["variant"]) if own else "")
        rows.append((label + _ssim(found, way), found.ways[way]))
    return picture_grid(rows) if len(rows) > 1 else None


def picture_grid(rows: Sequence[Row]) -> Figure:
    """Rows of images [k, H, W, 3] (uint8) with their names at the left, eight images a row."""
    columns = min(COLUMNS, *(len(images) for _, images in rows))
    strips = [_strip(images[:columns]) for _, images in rows]
    wide, high = SIDE * columns, SIDE * len(rows)
    letters = max(len(line) for name, _ in rows for line in name.splitlines())
    beside = LETTER * letters + 0.15
    figure = Figure(figsize=(beside + wide, high))
    for number, ((name, _), strip) in enumerate(zip(rows, strips, strict=True)):
        bottom = 1 - (number + 1) / len(rows)
        box = (beside / (beside + wide), bottom, wide / (beside + wide), 1 / len(rows))
        axes = figure.add_axes(box)
        axes.imshow(strip, interpolation="nearest", aspect="auto")
        axes.set_axis_off()
        axes.text(-0.01, 0.5, name, transform=axes.transAxes, ha="right", va="center", fontsize=8)
    return figure


def _strip(images: Images) -> Images:
    """Images [k, H, W, 3] side by side, enlarged by a whole factor, with a white margin."""
    factor = max(1, ENLARGED // images.shape[1])
    large = images.repeat(factor, axis=1).repeat(factor, axis=2)
    margin = max(1, large.shape[1] // 32)
    framed = np.pad(
        large, ((0, 0), (margin, margin), (margin, margin), (0, 0)), constant_values=255
    )
    return np.concatenate(list(framed), axis=1)


def _of_settings(study: Study, attack: str) -> Iterator[tuple[str, Reconstructions]]:
    """The first run of each setting that has pictures, in the order of settings."""
    owners = list(zip(study.runs, settings(study.runs), strict=True))
    for setting in study.settings:
        for run, own in owners:
            found = reconstructions(run, attack) if own == setting else None
            if found is not None:
                yield setting.label, found
                break


def _way(found: Reconstructions, variant: str) -> str:
    """The way of a variant that has pictures, by whichever threat model the file names first."""
    for way in found.ways:
        if way == variant or way.startswith(f"{variant}, "):
            return way
    return next(iter(found.ways))


def _ssim(found: Reconstructions, way: str) -> str:
    """The score of the very try that made the pictures, which need not be the one that counts."""
    return f"\nSSIM {found.ssim[way]:.2f}" if way in found.ssim else ""


def _same(one: Images, other: Images) -> bool:
    kept = min(COLUMNS, len(one), len(other))
    return np.array_equal(one[:kept], other[:kept])
