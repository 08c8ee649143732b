# SPDX-License-Identifier: Apache-2.0
"""The command ``report``: a run or a sweep rewrites its report, several runs are compared."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import pandas as pd
from rich.console import Console
from rich.text import Text

from reports import atomic
from reports.attack_results import attack_table
from reports.attack_text import side_by_side
from reports.comparison import compare
from reports.console import print_table
from reports.cost import cost_table
from reports.display import readable
from reports.errors import RunFolderError
from reports.markdown import latex_table, markdown_table
from reports.report import (
    differing_settings,
    results,
    shared_settings,
    summary,
    write_comparison,
    write_report,
)
from reports.run_folder import RunFolder
from reports.study import Study
from reports.sweep_folder import SweepFolder
from reports.sweep_report import sweep_tables, write_sweep_report
from reports.table6 import table6
from reports.tradeoff import tradeoff
from reports.utility import utility_per_attribute, utility_table

Format = Literal["md", "csv", "parquet", "latex"]


def report_command(runs: list[Path], out: Path | None = None, format: Format = "md") -> None:
    """Report on one run or one sweep, or compare several runs.

    Parameters
    ----------
    runs : list[Path]
        Run folders. One: its ``report.md`` and figures are written anew and a summary is printed.
        Several: a comparison is printed and written. Or the folder of one sweep: its ``report.md``
        and figures are written anew, and privacy beside utility is printed.
    out : Path | None
        Folder for the comparison (default ``comparison``), or for the tables of one run or sweep
        (default ``tables`` in its folder).
    format : {"md", "csv", "parquet", "latex"}
        How tables are written. ``md`` is in the report or comparison itself; for one run tables of
        their own are written only if ``out`` or another format is given.

    Raises
    ------
    RunFolderError
        If no run is given, or some are not run folders: all of them are named at once; or if a
        sweep is given together with anything else.
    """
    sweeps = [path for path in runs if SweepFolder.is_sweep(path)]
    if sweeps and len(runs) > 1:
        raise RunFolderError(f"{sweeps[0]} is a sweep, which stands alone: name nothing beside it")
    if sweeps:
        _report_sweep(SweepFolder.open(sweeps[0]), out, format, Console())
        return
    opened = open_all(runs)
    console = Console()
    if len(opened) == 1:
        _report_one(opened[0], out, format, console)
    else:
        _report_several(opened, out or Path("comparison"), format, console)


def open_all(paths: Sequence[Path]) -> list[RunFolder]:
    """Open all runs, each once, or say what is wrong with every one that cannot be.

    Raises
    ------
    RunFolderError
    """
    opened: dict[Path, RunFolder] = {}
    problems = []
    for path in paths:
        try:
            opened.setdefault(path.resolve(), RunFolder.open(path))
        except RunFolderError as error:
            problems.append(str(error))
    if not paths:
        problems.append("no run given: name at least one run folder")
    if problems:
        raise RunFolderError("\n".join(problems))
    return list(opened.values())


def write_tables(tables: Mapping[str, pd.DataFrame], out: Path, format: Format) -> list[Path]:
    """Write each table that has rows into the folder ``out``; returns the files."""
    out.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, table in tables.items():
        if not table.empty:
            path = out / f"{name}.{'tex' if format == 'latex' else format}"
            atomic.write_bytes(path, ENCODERS[format](table))
            paths.append(path)
    return paths


def _report_one(run: RunFolder, out: Path | None, format: Format, console: Console) -> None:
    report = write_report(run)
    print_table(console, summary(run), f"Run {run.name}")
    _say(console, report)
    if out is not None or format != "md":
        tables = {
            "utility": utility_table([run]),
            "attributes": utility_per_attribute(run),
            "cost": cost_table([run]),
            "attacks": attack_table([run]),
            "table6": table6(Study([run])),
        }
        for path in write_tables(tables, out or run.path / "tables", format):
            _say(console, path)


def _report_sweep(sweep: SweepFolder, out: Path | None, format: Format, console: Console) -> None:
    report = write_sweep_report(sweep.path)
    study = Study(sweep.runs)
    if not study.table.empty:
        print_table(console, side_by_side(study, "ssim"), f"Sweep {sweep.name}: SSIM by attacker")
    failed = sweep.counts().get("failed", 0) + len(sweep.problems)
    if failed:
        console.print(Text(f"{failed} of {len(sweep.trials)} trials failed: see the report"))
    _say(console, report)
    if out is not None or format != "md":
        for path in write_tables(sweep_tables(sweep), out or sweep.path / "tables", format):
            _say(console, path)


def _report_several(runs: list[RunFolder], out: Path, format: Format, console: Console) -> None:
    comparison = write_comparison(runs, out)
    console.print(Text(shared_settings(runs).replace("`", "")))
    settings = differing_settings(runs)
    if len(settings.columns) > 1:
        print_table(console, settings, "Settings")
    print_table(console, results(runs), "Results")
    _say(console, comparison)
    if format != "md":
        tables = {
            "comparison": compare(runs),
            "utility": utility_table(runs),
            "cost": cost_table(runs),
            "attacks": attack_table(runs),
            "table6": table6(Study(runs)),
            "pareto": tradeoff(Study(runs)),
        }
        for path in write_tables(tables, out, format):
            _say(console, path)


def _say(console: Console, path: Path) -> None:
    console.print(Text(f"Wrote {path}"), soft_wrap=True)


def _csv(table: pd.DataFrame) -> bytes:
    return table.to_csv(index=False).encode("utf-8")


def _parquet(table: pd.DataFrame) -> bytes:
    content: bytes = table.to_parquet(index=False)
    return content


ENCODERS: Mapping[str, Callable[[pd.DataFrame], bytes]] = {
    "md": lambda table: markdown_table(readable(table)).encode("utf-8"),
    "csv": _csv,
    "parquet": _parquet,
    "latex": lambda table: latex_table(readable(table)).encode("utf-8"),
}
