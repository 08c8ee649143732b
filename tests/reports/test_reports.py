# SPDX-License-Identifier: Apache-2.0
"""What reports and comparisons say, and what the command prints and refuses."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from reports import RunFolder, RunFolderError
from reports.canvas import save
from reports.cli import Format, report_command, write_tables
from reports.cost import cost_table
from reports.display import duration, number, size
from reports.figures import attribute_figure, cost_figure, utility_figure
from reports.markdown import latex_table, markdown_table
from reports.report import write_comparison, write_report
from tests.reports.fake_run import ATTACK, MakeRun, metric


def text_of(run: RunFolder) -> str:
    return write_report(run).read_text(encoding="utf-8")


def test_report_holds_the_numbers(run: RunFolder) -> None:
    text = text_of(run)
    for told in (
        "**88.00 %**", "**69.00 %**", "+19.00 points", "**71.00 %**", "2 of 3 attributes",
        "by 2 clients", "4.00 MB", "133.3 images/s", "3.28 kB on the wire", "0.150 .. 0.184",
        "0.140", "low-pass filter of radius 0.05, then Gaussian noise",
        "round-0002",
        "data: test images", "`vit_tiny_patch16_224`",
    ):  # fmt: skip
        assert told in text, told
    for name in ("utility", "attributes", "cost"):
        assert f"(figures/{name}.png)" in text
        assert (run.figures_path / f"{name}.png").stat().st_size > 1000


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("changes", "told", "untold"),
    [
        ({}, "simulation: its keys derive from the seed (7) and are reproducible", "at random"),
        ({"key_source": "random"}, "drawn at random", "simulation"),
        ({"key_source": "file"}, "files that the data owners hold", "simulation"),
        ({"permute": "none"}, "No permutation", "keys derive"),
        ({"defences": ""}, "**No defence**", "low-pass"),
    ],
)
def test_report_says_where_keys_come_from(
    make_run: MakeRun, changes: dict[str, object], told: str, untold: str
) -> None:
    text = text_of(make_run(**changes))
    assert told in text
    assert untold not in text


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("accuracy", "told"),
    [(0.90, "tells more"), (0.71, "not shown to have learnt"), (0.40, "does worse")],
)
def test_report_says_what_the_gain_means(make_run: MakeRun, accuracy: float, told: str) -> None:
    run = make_run(full=False)
    run.append_metrics([metric("accuracy", accuracy), metric("floor", 0.70)], round=1)
    assert told in text_of(run)


@pytest.mark.usefixtures("undrawn")
def test_report_of_a_run_without_results(make_run: MakeRun) -> None:
    run = make_run(full=False)
    run.write_progress({"round": 1, "rounds": 2, "phase": "train"})
    text = text_of(run)
    for told in (
        "**Incomplete.**", "round 1 of 2", "No evaluation was written", "No ledger was written",
        "No attack has been run", "an unknown number of clients", "none yet",
    ):  # fmt: skip
        assert told in text, told
    assert "![" not in text


@pytest.mark.usefixtures("undrawn")
def test_report_of_a_failed_run_shows_its_error(run: RunFolder) -> None:
    run.set_status("failed", error="RuntimeError: trunk lost")
    run.add_facts({"warnings": ["client 0 failed", "client 1 failed"]})
    text = text_of(run)
    assert "**Failed.**" in text
    assert "```text\nRuntimeError: trunk lost\n```" in text
    assert "**2 warnings** in `run.json`; the last one:\n\n```text\nclient 1 failed\n```" in text
    assert "**88.00 %**" in text


@pytest.mark.usefixtures("undrawn")
def test_report_of_two_attackers_keeps_units_apart(make_run: MakeRun) -> None:
    run = make_run()
    f_sim = {"metric": "f_sim", "embedder": "arcface.onnx", "value": 0.5, "low": float("nan")}
    run.append_attacks([ATTACK | f_sim | {"floor_mean_image": float("nan")}])
    text = text_of(run)
    assert "F-SIM (arcface.onnx)" in text
    assert "0.140" in text


def test_comparison(make_run: MakeRun, tmp_path: Path) -> None:
    runs = [make_run("first"), make_run("second", permute="none"), make_run("empty", full=False)]
    path = write_comparison(runs, tmp_path / "out")
    text = path.read_text(encoding="utf-8")
    assert "data = `synthetic:1600`" in text
    assert "permute = " not in text
    assert text.count("88.00") == 2
    assert (tmp_path / "out/figures/utility.png").is_file()
    alike = write_comparison([runs[0], runs[2]], tmp_path / "out").read_text(encoding="utf-8")
    assert "do not differ in any setting" in alike
    assert "| finished | test  |     2 |" in alike  # not 2.000, though the other run has none


def test_figures_need_data(make_run: MakeRun, tmp_path: Path) -> None:
    empty = make_run("empty", full=False)
    assert utility_figure([empty]) is utility_figure([empty, empty]) is None
    assert attribute_figure(empty) is cost_figure(empty) is None
    figure = cost_figure(make_run())
    assert figure is not None
    assert save(figure, tmp_path / "cost.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("undrawn")
def test_command_on_one_run(run: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    report_command([run.path])
    printed = capsys.readouterr().out
    assert "88.00" in printed
    assert str(run.report_path) in printed
    assert run.report_path.is_file()
    report_command([run.path, run.path], None, "csv")
    assert pd.read_csv(run.path / "tables/cost.csv")["bytes"].sum() == 4_800_000


@pytest.mark.usefixtures("undrawn")
def test_command_on_several_runs(
    make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    report_command([make_run("first").path, make_run("second", permute="none").path], None, "csv")
    table = pd.read_csv(tmp_path / "comparison/comparison.csv")
    assert table["accuracy"].tolist() == pytest.approx([0.88, 0.88])
    assert (tmp_path / "comparison/comparison.md").is_file()
    printed = capsys.readouterr().out
    assert "permute" in printed
    assert "3.28 kB" in printed


@pytest.mark.parametrize("format", ["md", "csv", "parquet", "latex"])
def test_tables_in_every_format(run: RunFolder, tmp_path: Path, format: Format) -> None:
    tables = {"costs": cost_table([run]), "none": cost_table([run]).head(0)}
    (path,) = write_tables(tables, tmp_path / "out", format)
    assert path.suffix.removeprefix(".") == format.replace("latex", "tex")
    if format == "parquet":
        assert pd.read_parquet(path)["bytes"].sum() == 4_800_000
    else:
        assert "trunk-compute" in path.read_text(encoding="utf-8")


@pytest.mark.usefixtures("undrawn")
def test_command_names_all_bad_paths(run: RunFolder, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(RunFolderError) as error:
        report_command([tmp_path / "nowhere", run.path, tmp_path / "folder"])
    assert "nowhere: no such folder" in str(error.value)
    assert "config.toml is missing; run.json is missing" in str(error.value)
    assert not run.report_path.exists()
    with pytest.raises(RunFolderError, match="no run given"):
        report_command([])


def test_tables_as_text() -> None:
    table = pd.DataFrame({"name": ["a|b", "c_d"], "share %": ["1.50", "–"]})  # noqa: RUF001
    assert markdown_table(table) == (
        "| name | share % |\n| ---- | ------: |\n| a\\|b |    1.50 |\n| c_d  |       – |\n"  # noqa: RUF001
    )
    assert latex_table(table).splitlines()[:5] == [
        r"\begin{tabular}{lr}", r"\toprule", r"name & share \% \\", r"\midrule", r"a|b & 1.50 \\",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        (number(0.3), "0.3000"), (number(1234.5), "1,234"), (number(0.0), "0"),
        (number(2e-5), "2.000e-05"), (size(999), "999 B"), (size(1_234_567), "1.23 MB"),
        (duration(0.25), "250.0 ms"), (duration(250), "4 min 10 s"), (duration(7500), "2 h 05 min"),
    ],
)  # fmt: skip
def test_numbers_as_text(shown: str, told: str) -> None:
    assert shown == told


def test_the_run_folder_needs_neither_matplotlib_nor_torch() -> None:
    code = (
        "import sys, reports; "
        "sys.exit(bool({'torch', 'flwr', 'ray', 'matplotlib'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
