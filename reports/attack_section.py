# SPDX-License-Identifier: Apache-2.0
"""What the attackers got, as Markdown: the part of a run's report on privacy."""

from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from reports import attack_prose, canvas
from reports.attack_results import attack_table
from reports.attack_text import rows_as_text
from reports.effort import effort_table
from reports.errors import RunFolderError
from reports.learning_figure import learning_figure
from reports.markdown import markdown_table
from reports.picture_figures import run_pictures
from reports.run_folder import RunFolder

NONE = "No attack has been run. `permsplit attack RUN --attacker decoder,position` runs some."


def attack_section(run: RunFolder) -> str:
    """Subsections on one run: the table with its floors, pictures, and learning curves."""
    table = attack_table([run])
    if table.empty:
        return f"### Attacks\n\n{NONE}"
    figures = run.figures_path
    parts = [
        "### Attacks",
        attack_prose.victims(table),
        attack_prose.attackers(table),
        how_hard([run]),
        markdown_table(rows_as_text(table)),
        attack_prose.meanings(table),
        _titled(
            "### What came back",
            picture(lambda: run_pictures(run), figures / "reconstructions.png", "Reconstructions"),
        ),
        _titled(
            "### How the attackers learned",
            picture(
                lambda: learning_figure([run]), figures / "attack-learning.png", "Learning curves"
            ),
        ),
    ]
    return "\n\n".join(part.strip() for part in parts if part)


def attack_comparison(runs: Sequence[RunFolder]) -> str:
    """All rows of several runs in one table."""
    table = attack_table(runs)
    if table.empty:
        return NONE
    shown = rows_as_text(table)
    shown.insert(0, "run", list(table["run"]))
    return (
        "Means over images with bootstrap intervals; the floors are the scores of someone who has "
        f"not attacked.\n\n{markdown_table(shown)}"
    )


def how_hard(runs: Sequence[RunFolder]) -> str:
    """How long the attackers learned, and from what; what cannot be read is said instead."""
    try:
        return attack_prose.effort(effort_table(runs))
    except RunFolderError as error:
        return f"**How long they learned is missing:** {error}"


def picture(draw: Callable[[], Figure | None], path: Path, title: str) -> str:
    """The Markdown of a figure; what cannot be read is said in its place, not raised."""
    try:
        return canvas.shown(draw(), path, title)
    except RunFolderError as error:
        return f"**{title} are missing:** {error}"


def _titled(title: str, text: str) -> str:
    return f"{title}\n\n{text}" if text else ""
