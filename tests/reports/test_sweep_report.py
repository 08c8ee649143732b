# SPDX-License-Identifier: Apache-2.0
"""The report of a sweep: reads on its own, tells failures, refuses what is no sweep."""

import shutil
from pathlib import Path

import pandas as pd
import pytest

from attacks import ATTACKERS, THREATS
from attacks.threat import Grant
from reports import RunFolderError, Study, attack_prose
from reports.attack_results import TOLD
from reports.attack_text import permutation_effect, side_by_side
from reports.cli import Format, report_command, write_tables
from reports.sweep_folder import SweepFolder
from reports.sweep_report import sweep_tables, write_sweep_report
from tests.reports.fake_run import CONFIG, MakeRun, fake_sweep, trial


@pytest.mark.usefixtures("undrawn")
def test_report_reads_on_its_own(sweep: Path) -> None:
    text = write_sweep_report(sweep).read_text(encoding="utf-8")
    for told in (
        "12 trials (10 finished, 1 failed, 1 pending), 10 min 00 s", "`defences`, `permute`",
        "data = `synthetic:1600`", "**`decoder`** (threat model `black-box`)",
        "- `known-edge`: it has images of other people", "is told the permutation of every sample",
        "64 images of the test split", "bootstrap interval of 95 %", "**mean image**",
        "| trial-10 | RuntimeError: trunk lost |", 'preset = "smoke"', "0.830 → 0.370",
        "![Accuracy against SSIM](figures/privacy-utility-ssim.png)", "reconstructions-position",
        "figures/attack-learning.png", "position, per-token", "0.457",
    ):  # fmt: skip
        assert told in text, told
    assert "Accuracy against F-SIM" not in text
    assert "NaN" not in text
    assert "nan" not in text


def test_its_figures_are_drawn(tmp_path: Path) -> None:
    path = write_sweep_report(fake_sweep(tmp_path, pictures=False))
    assert (tmp_path / "figures/privacy-utility-ssim.png").stat().st_size > 10_000
    assert "No pictures were kept." in path.read_text(encoding="utf-8")


def test_attackers_stand_side_by_side(sweep: Path) -> None:
    table = side_by_side(Study(SweepFolder.open(sweep).runs), "ssim").set_index("setting")
    assert list(table.columns) == [
        "accuracy %", "decoder", "position", "(mean image)", "(random image)",
    ]  # fmt: skip
    assert list(table.index)[:4] == ["SL", "SL + row", "GN 0.5", "GN 0.5 + row"]
    assert table.loc["SL + row"].tolist() == ["88.00", "0.370", "0.820", "0.140", "0.110"]


def test_what_permutation_does(sweep: Path) -> None:
    table = permutation_effect(Study(SweepFolder.open(sweep).runs)).set_index("setting")
    assert list(table.index) == ["SL", "GN 0.5", "GN 1.0", "LP 0.05", "BS 0.4"]
    assert table["difference, points"].tolist() == ["+0.00"] * 4 + ["-1.00"]
    assert table.loc["LP 0.05", "decoder"] == "0.620 → 0.300"


@pytest.mark.usefixtures("undrawn")
def test_a_sweep_without_attacks_and_with_broken_runs(tmp_path: Path, make_run: MakeRun) -> None:
    shutil.copytree(make_run("fine", full=False).path, tmp_path / "sweep" / "fine")
    (tmp_path / "sweep/broken").mkdir()
    rows = [trial("fine", "finished"), trial("broken", "finished"), trial("gone", "finished")]
    pd.DataFrame(rows).to_parquet(tmp_path / "sweep/trials.parquet")
    text = write_sweep_report(tmp_path / "sweep").read_text(encoding="utf-8")
    for told in (
        "No attack has been run", "was run, but not attacked", "config.toml is missing",
        "gone: no such folder",
    ):  # fmt: skip
        assert told in text, told


@pytest.mark.usefixtures("undrawn")
def test_command_on_a_sweep(
    sweep: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report_command([sweep], tmp_path, "csv")
    printed = capsys.readouterr().out
    assert "LP 0.05 + row" in printed
    assert "1 of 12 trials failed" in printed
    assert pd.read_csv(tmp_path / "pareto.csv")["pareto"].sum() == 6
    assert pd.read_csv(tmp_path / "attacks.csv")["metric"].nunique() == 3


@pytest.mark.parametrize("format", ["md", "latex", "parquet"])
def test_tables_of_a_sweep(sweep: Path, tmp_path: Path, format: Format) -> None:
    paths = write_tables(sweep_tables(SweepFolder.open(sweep)), tmp_path, format)
    assert [path.stem for path in paths] == ["trials", "attacks", "table6", "pareto"]
    if format == "parquet":
        assert pd.read_parquet(paths[2])["paper_psnr"].max() == 16.25
    else:
        assert all("LP 0.05" in path.read_text(encoding="utf-8") for path in paths[1:])


def test_what_is_no_sweep(tmp_path: Path, sweep: Path) -> None:
    with pytest.raises(RunFolderError, match="no such folder"):
        write_sweep_report(tmp_path / "nowhere")
    (tmp_path / "sweep.toml").touch()
    with pytest.raises(RunFolderError, match=r"trials.parquet is missing"):
        report_command([tmp_path])
    (tmp_path / "trials.parquet").write_bytes(b"half a file")
    with pytest.raises(RunFolderError, match=r"trials.parquet cannot be read"):
        report_command([tmp_path])
    pd.DataFrame([{"trial": "a"}]).to_parquet(tmp_path / "trials.parquet")
    with pytest.raises(RunFolderError, match="missing column 'status', 'error', 'seconds'"):
        report_command([tmp_path])
    with pytest.raises(RunFolderError, match="stands alone"):
        report_command([sweep, tmp_path])


def test_the_texts_fit_the_registry_of_attackers() -> None:
    assert set(attack_prose.ATTACKERS) == set(ATTACKERS)
    assert set(attack_prose.THREATS) == set(THREATS)
    told = {name for name, threat in THREATS.items() if Grant.ORDERS in threat.grants}
    assert set(TOLD) == told
    for name, threat in THREATS.items():
        text = attack_prose.THREATS[name]
        knows_edge = Grant.EDGE in threat.grants
        assert ("edge" in text) == knows_edge, name
        assert ("defence is used" in text or "and the defence" in text) == knows_edge, name
    assert CONFIG["permute"] == "row"
