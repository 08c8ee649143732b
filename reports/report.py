# SPDX-License-Identifier: Apache-2.0
"""The report of one run, and the comparison of several: Markdown that reads on its own."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from reports import atomic, figures, prose
from reports.attack_section import attack_comparison, attack_section
from reports.canvas import shown
from reports.comparison import KEY_SETTINGS, RESULTS, compare
from reports.cost import bytes_per_image, cost_table, images_per_second
from reports.display import cell, number, readable, size
from reports.labels import labels
from reports.markdown import markdown_table
from reports.run_folder import RunFolder
from reports.settings import differing
from reports.utility import headline, utility_per_attribute

KNOWN_FACTS = ("status", "error", "started", "finished", "resumed", "clients", "warnings")


def write_report(run: RunFolder) -> Path:
    """Write ``report.md`` and ``figures/`` of a run, complete or not.

    Returns
    -------
    Path
        The report.
    """
    sections = [
        f"# Run {run.name}\n\n{prose.status(run)}\n\n{prose.warnings(run.facts())}",
        f"## What was run\n\n{prose.setup(run.config(), run.facts())}",
        f"## Privacy\n\n{prose.privacy(run.config(), attacked=not run.attacks().empty)}",
        attack_section(run),
        f"## Utility\n\n{_utility(run)}",
        f"## Cost\n\n{_cost(run)}",
        f"## Facts\n\n{_facts(run)}",
        f"## Settings\n\n{_settings(run)}",
        f"## Where things lie\n\n{_places(run)}",
    ]
    atomic.write_text(run.report_path, "\n\n".join(text.strip() for text in sections) + "\n")
    return run.report_path


def write_comparison(runs: Sequence[RunFolder], out: Path) -> Path:
    """Write ``comparison.md`` and ``figures/`` on several runs into the folder ``out``.

    Returns
    -------
    Path
        The comparison.
    """
    out.mkdir(parents=True, exist_ok=True)
    figure = shown(figures.utility_figure(runs), out / "figures" / "utility.png", "Utility")
    costs = readable(cost_table(runs))
    sections = [
        f"# Comparison of {len(runs)} runs",
        f"## Settings\n\n{shared_settings(runs)}\n\n{_different(runs)}",
        f"## Results\n\n{markdown_table(results(runs))}\n{_reading()}\n\n{figure}",
        f"## Attacks\n\n{attack_comparison(runs)}",
        f"## Cost of each leg\n\n{markdown_table(costs) if len(costs) else 'No ledger.'}",
        "## Where things lie\n\n" + "\n".join(f"- `{run.path.resolve()}`" for run in runs),
    ]
    path = out / "comparison.md"
    atomic.write_text(path, "\n\n".join(text.strip() for text in sections) + "\n")
    return path


def shared_settings(runs: Sequence[RunFolder]) -> str:
    """The key settings in which the runs agree, in one sentence."""
    config, apart = runs[0].config(), differing(runs)
    same = [f"{key} = `{_shown(config.get(key))}`" for key in KEY_SETTINGS if key not in apart]
    return f"The same in all: {', '.join(same)}." if same else "No key setting is the same in all."


def differing_settings(runs: Sequence[RunFolder]) -> pd.DataFrame:
    """The settings in which the runs differ, as text, one row a run."""
    keys = differing(runs)
    rows = [[run.config().get(key) for key in keys] for run in runs]
    shown = [[label, *map(_shown, row)] for label, row in zip(labels(runs), rows, strict=True)]
    return pd.DataFrame(shown, columns=["run", *keys], dtype="object")


def results(runs: Sequence[RunFolder]) -> pd.DataFrame:
    """The results of the runs, as text, one row a run."""
    return readable(compare(runs)[["run", *RESULTS]])


def summary(run: RunFolder) -> pd.DataFrame:
    """The results of one run, as text: one row a result."""
    rows = results([run]).drop(columns="run").iloc[0]
    return pd.DataFrame({"result": list(rows.index), run.name: list(rows)})


def _different(runs: Sequence[RunFolder]) -> str:
    if not differing(runs):
        return "The runs do not differ in any setting."
    return markdown_table(differing_settings(runs))


def _utility(run: RunFolder) -> str:
    last = headline(run)
    curve = shown(
        figures.utility_figure([run]), run.figures_path / "utility.png", "Utility over rounds"
    )
    if last is None:
        return f"No evaluation was written, so the utility of this model is unknown.\n\n{curve}"
    attributes = utility_per_attribute(run, last.split)
    parts = [prose.utility(last, attributes), curve]
    if not attributes.empty:
        dumbbell = figures.attribute_figure(run, last.split)
        parts += [
            shown(dumbbell, run.figures_path / "attributes.png", "Accuracy against floor"),
            markdown_table(readable(attributes.sort_values("gain", ascending=False))),
        ]
    return "\n\n".join(part for part in parts if part)


def _cost(run: RunFolder) -> str:
    table = cost_table([run])
    if table.empty:
        return "No ledger was written, so the cost is unknown."
    speed, bulk = images_per_second(run), bytes_per_image(run)
    text = (
        f"In training: {cell(speed, number)} images/s, {cell(bulk, size)} on the wire for an image "
        "(up and down, weights included). A step is one batch of one client. Times are summed over "
        "clients and may overlap, so they can exceed the time of the run."
    )
    figure = shown(figures.cost_figure(run), run.figures_path / "cost.png", "Cost of each leg")
    legs = readable(table.drop(columns=["run", "images_per_second"]))
    return f"{text}\n\n{markdown_table(legs)}\n{figure}"


def _facts(run: RunFolder) -> str:
    facts = run.facts()
    rows = [row for name in facts if name not in KNOWN_FACTS for row in _flat(name, facts[name])]
    return markdown_table(pd.DataFrame(rows, columns=["fact", "value"]))


def _settings(run: RunFolder) -> str:
    rows = [(f"`{key}`", f"`{_shown(value)}`") for key, value in run.config().items()]
    return markdown_table(pd.DataFrame(rows, columns=["key", "value"]))


def _places(run: RunFolder) -> str:
    checkpoint = run.latest_checkpoint()
    last = f"latest `checkpoints/{checkpoint.name}`" if checkpoint else "none yet"
    return "\n".join(
        (
            "All paths are relative to this report.\n",
            "- `config.toml`: the settings; `run.json`: the facts",
            "- `metrics.parquet`, `ledger.parquet`, `attacks.parquet`: all numbers "
            '(`pandas.read_parquet("metrics.parquet")`)',
            f"- `checkpoints/`: weights by round, {last}",
            "- `traffic/`: recorded smashed data, if it was asked for",
            "- `attacks/`: what attackers learned, and the pictures they made",
            "- `figures/`: the figures above",
        )
    )


def _reading() -> str:
    return (
        "Accuracy is the mean over attributes; the floor is the accuracy of always answering the "
        "majority class, and only the gain over it is what a model has learnt. Compare runs on the "
        "same split and data only."
    )


def _flat(name: str, value: Any) -> list[tuple[str, str]]:
    if isinstance(value, Mapping):
        return [row for key, inner in value.items() for row in _flat(f"{name}: {key}", inner)]
    if isinstance(value, list):
        return [(name, ", ".join(map(str, value)) or "none")]
    return [(name, cell(value))]


def _shown(value: object) -> str:
    if value == "":
        return "(none)"
    return str(value).lower() if isinstance(value, bool) else cell(value)
