# SPDX-License-Identifier: Apache-2.0
"""The report of a sweep: Markdown that reads on its own."""

from pathlib import Path

import pandas as pd

from reports import atomic, attack_prose, paper
from reports.attack_section import NONE, how_hard, picture
from reports.attack_text import (
    METRICS,
    percent_text,
    permutation_effect,
    side_by_side,
    table6_as_text,
    value_text,
)
from reports.comparison import KEY_SETTINGS
from reports.display import MISSING, cell, duration
from reports.learning_figure import learning_figure
from reports.markdown import markdown_table
from reports.picture_figures import study_pictures
from reports.settings import differing
from reports.study import Study, way_name
from reports.sweep_folder import SweepFolder
from reports.table6 import table6
from reports.tradeoff import tradeoff
from reports.tradeoff_figure import tradeoff_figure

SHOWN_SIDE_BY_SIDE = ("ssim", "f_sim", "position_accuracy", "auc", "balanced_accuracy")
CURVES = ("ssim", "f_sim")


def write_sweep_report(folder: str | Path) -> Path:
    """Write ``report.md`` and ``figures/`` of a sweep, complete or not.

    Returns
    -------
    Path
        The report.

    Raises
    ------
    RunFolderError
        If the folder is no sweep. Broken runs and failed trials are told in the report.
    """
    sweep = SweepFolder.open(folder)
    study = Study(sweep.runs)
    sections = [
        f"# Sweep {sweep.name}\n\n{_state(sweep)}",
        f"## What was attacked\n\n{_attacked(sweep, study)}",
        *(_results(sweep, study) if not study.table.empty else [f"## Results\n\n{NONE}"]),
        f"## Failures\n\n{_failures(sweep)}",
        f"## Where things lie\n\n{_places(sweep)}",
    ]
    atomic.write_text(sweep.report_path, "\n\n".join(text.strip() for text in sections) + "\n")
    return sweep.report_path


def sweep_tables(sweep: SweepFolder) -> dict[str, pd.DataFrame]:
    """The tables of a sweep by name: trials, attacks, table6, pareto."""
    study = Study(sweep.runs)
    return {
        "trials": sweep.trials,
        "attacks": study.table,
        "table6": table6(study),
        "pareto": tradeoff(study),
    }


def _results(sweep: SweepFolder, study: Study) -> list[str]:
    return [
        f"## By whom, knowing what\n\n{_attackers(study)}",
        f"## What the numbers mean\n\n{_meanings(study)}",
        f"## Attackers side by side\n\n{_side_by_side(study)}",
        f"## What row permutation does\n\n{_permutation(study)}",
        f"## Privacy against utility\n\n{_tradeoff(sweep, study)}",
        f"## Beside the paper's Table 6\n\n{_table6(study)}",
        f"## What came back\n\n{_pictures(sweep, study)}",
        f"## How the attackers learned\n\n{_learning(sweep, study)}",
    ]


def _state(sweep: SweepFolder) -> str:
    told = ", ".join(f"{count} {status}" for status, count in sweep.counts().items())
    seconds = float(pd.to_numeric(sweep.trials["seconds"], errors="coerce").sum())
    varied = ", ".join(f"`{key}`" for key in sweep.keys) or "nothing"
    return (
        f"{len(sweep.trials)} trials ({told or 'none'}), {duration(seconds)} of work in all; "
        f"varied: {varied}. Each trial is a run of its own with its own `report.md`."
    )


def _attacked(sweep: SweepFolder, study: Study) -> str:
    if not study.runs:
        return "No run can be read yet."
    config, apart = study.runs[0].config(), differing(study.runs)
    keys = [*KEY_SETTINGS, "image-size", "patch-size", "dim", "depth", "edge-position", "rounds"]
    same = [f"{key} = `{cell(config[key]) or '(none)'}`"
            for key in dict.fromkeys(keys) if key in config and key not in apart]  # fmt: skip
    rows = [
        [setting.label, percent_text(*study.accuracy(setting)), floor, balanced, str(runs)]
        for setting, (floor, balanced, runs) in zip(study.settings, _utility(study), strict=True)
    ]
    heads = ["setting", "accuracy %", "majority-class floor %", "balanced accuracy %", "runs"]
    return (
        "Split Transformers whose clients send smashed data to a server; the attackers want the "
        f"images back. The same in all: {', '.join(same)}.\n\nSettings are named as in the paper: "
        "SL no defence, GN Gaussian noise (sigma), LP low-pass filter (radius), BS batch shuffle "
        "(tokens kept), `+ row` with permuted tokens. Runs of one setting differ in their seed; ± "
        "is the standard deviation over them. Utility is the mean accuracy of the attributes on "
        f"the test split, after the last round:\n\n{_table(rows, heads)}"
    )


def _utility(study: Study) -> list[tuple[str, str, int]]:
    columns = study.utility[["accuracy_floor", "balanced_accuracy", "runs"]]
    return [
        (percent_text(float(floor)), percent_text(float(balanced)), int(runs))
        for floor, balanced, runs in columns.itertuples(index=False)
    ]


def _attackers(study: Study) -> str:
    texts = [
        attack_prose.attackers(study.table),
        how_hard(study.runs),
        attack_prose.victims(study.table),
    ]
    return "\n\n".join(text for text in texts if text)


def _meanings(study: Study) -> str:
    text = (
        f"{attack_prose.meanings(study.table)}\n\nWith several seeds a value is their mean, ± "
        "their standard deviation, and the interval spans those of all seeds."
    )
    if study.table.groupby("run")["client"].nunique().max() > 1:
        text += (
            " Where a run was attacked on all its clients and on some alone, those count from whom "
            "most came back."
        )
    return text


def _side_by_side(study: Study) -> str:
    parts = [
        "Each attacker by the way that got most out of the victims (all ways are below); in "
        "brackets the floors."
    ]
    for metric in SHOWN_SIDE_BY_SIDE:
        if study.attackers(metric):
            table = side_by_side(study, metric)
            parts.append(f"### {METRICS[metric]}\n\n{markdown_table(table)}")
    return "\n\n".join(part.strip() for part in parts)


def _permutation(study: Study) -> str:
    table = permutation_effect(study)
    if table.empty:
        return "No setting was run both without and with row permutation."
    return (
        "Settings that are alike but for the row permutation. Accuracy should not move beyond "
        "rounding, since the blocks commute with the permutation; the arrows go "
        "from SSIM without to SSIM with it, attacker by attacker.\n\n"
        f"{markdown_table(table)}"
    )


def _tradeoff(sweep: SweepFolder, study: Study) -> str:
    table = tradeoff(study)
    if table.empty:
        return "No setting has both an evaluation and an attack that makes images."
    curves = [
        picture(
            lambda metric=metric: tradeoff_figure(study, metric),  # type: ignore[misc]
            sweep.figures_path / f"privacy-utility-{metric.replace('_', '-')}.png",
            f"Accuracy against {METRICS[metric]}",
        )
        for metric in CURVES
    ]
    text = (
        "A setting is as private as its strongest attacker leaves it. The Pareto set holds the "
        "settings that no other one equals in both accuracy and SSIM and beats in one, both as "
        "shown here, so that rounding errors of the training decide nothing. Compare "
        "only settings that the same attackers tried: against fewer, a setting looks more private "
        "than it is."
    )
    return "\n\n".join([text, *(c for c in curves if c), markdown_table(_tradeoff_text(table))])


def _tradeoff_text(table: pd.DataFrame) -> pd.DataFrame:
    order = table.sort_values(["pareto", "accuracy"], ascending=False, kind="stable")
    rows = []
    for row in order.to_dict("records"):
        value, spread = float(row["value"]), float(row["spread"])
        low, high = (value_text(float(row[bound]), "ssim") for bound in ("low", "high"))
        rows.append(
            {
                "setting": row["setting"],
                "Pareto": "yes" if row["pareto"] else "no",
                "accuracy %": percent_text(float(row["accuracy"]), float(row["accuracy_spread"])),
                "SSIM": value_text(value, "ssim", spread),
                "95 % interval": MISSING if low == MISSING else f"{low} .. {high}",
                "mean image": value_text(float(row["floor_mean_image"]), "ssim"),
                "strongest attacker": way_name(
                    *(str(row[k]) for k in ("attack", "variant", "threat"))
                ),
                "attackers that tried": row["attackers"],
            }
        )
    return pd.DataFrame(rows, dtype="object")


def _table6(study: Study) -> str:
    table = table6(study)
    if table.empty:
        return "No attacker made images."
    parts = [
        f"The paper's numbers ({paper.SOURCE}: CelebA, ViT-B/16, 224 px, single numbers without "
        "seeds) stand beside those of its attacker, `decoder`. Only SSIM and PSNR *in the paper's "
        "way* compare to them; data, model, image size and training are those named above, not the "
        "paper's. It does not tell its sigma of GN or its k of BS, and has no row for SL + row."
    ]
    for attack in dict.fromkeys(table["attack"]):
        parts.append(f"### `{attack}`\n\n{markdown_table(table6_as_text(table, attack))}")
    return "\n\n".join(part.strip() for part in parts)


def _pictures(sweep: SweepFolder, study: Study) -> str:
    parts = []
    for attack in study.attackers("ssim"):
        text = picture(
            lambda attack=attack: study_pictures(study, attack),  # type: ignore[misc]
            sweep.figures_path / f"reconstructions-{attack}.png",
            f"Reconstructions of {attack}",
        )
        if text:
            parts.append(f"`{attack}`:\n\n{text}")
    return "\n\n".join(parts) or "No pictures were kept."


def _learning(sweep: SweepFolder, study: Study) -> str:
    path = sweep.figures_path / "attack-learning.png"
    text = picture(lambda: learning_figure(study.runs), path, "Learning curves")
    if not text:
        return "No attacker had anything to learn, or no curve was kept."
    return (
        "Loss on auxiliary people held out, over epochs. A curve that still falls at its end says "
        f"that the attacker would get better with more of them.\n\n{text}"
    )


def _failures(sweep: SweepFolder) -> str:
    failed = sweep.trials[sweep.trials["status"] == "failed"]
    pairs = [(str(t), str(e)) for t, e in zip(failed["trial"], failed["error"], strict=True)]
    pairs += [item for item in sweep.problems.items() if item[0] not in set(failed["trial"])]
    pairs += [(run.name, "was run, but not attacked") for run in sweep.runs if run.attacks().empty]
    if not pairs:
        return "None." if set(sweep.counts()) <= {"finished"} else "None so far."
    rows = [[trial, _last_line(error)] for trial, error in pairs]
    return f"{_table(rows, ['trial', 'what is wrong'])}\nThe trial's `run.json` has the traceback."


def _last_line(error: str) -> str:
    """Of a traceback the line that names the error."""
    lines = [line.strip() for line in error.strip().splitlines() if line.strip()]
    return lines[-1] if lines else "failed without a word"


def _places(sweep: SweepFolder) -> str:
    text = (
        "All paths are relative to this report.\n\n"
        "- `<trial>/`: the run folders, each with its `report.md`\n"
        "- `trials.parquet`: how each trial went\n"
        "- `figures/`: the figures above\n"
        "- `permsplit report . --format csv` (or `latex`, `parquet`) writes the tables, all "
        "results with their intervals among them"
    )
    grid = sweep.grid.strip()
    return f"{text}\n\nThe sweep as it was asked for:\n\n```toml\n{grid}\n```" if grid else text


def _table(rows: list[list[str]], heads: list[str]) -> str:
    return markdown_table(pd.DataFrame(rows, columns=heads, dtype="object"))
