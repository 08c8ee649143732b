# SPDX-License-Identifier: Apache-2.0
"""``permsplit attack``: attackers as Ray tasks, from a run's folder to its table."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from finished import finished_run
from safetensors.numpy import load_file
from typer.testing import CliRunner

from reports import RunFolder
from server_app.cli import app


def permsplit(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "server_app.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def refused(*arguments: object) -> str:
    """What ``permsplit attack`` says when it refuses, with an exit code and no traceback."""
    result = CliRunner().invoke(app, ["attack", *map(str, arguments)])
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code in (1, 2)
    return result.output


@pytest.mark.slow
def test_attackers_fill_the_table_and_repeat_to_the_same_numbers(tmp_path: Path) -> None:
    run = finished_run(tmp_path)
    arguments = (
        "attack",
        run.path,
        "--attacker",
        "analytic,decoder",
        "--images",
        16,
        "--epochs",
        1,
    )
    first = permsplit(*arguments)
    assert first.returncode == 0, first.stderr
    table = run.attacks()
    assert set(table["attack"]) == {"analytic", "decoder"}
    assert {"ssim", "psnr", "ssim_paper", "psnr_paper", "position_accuracy"} <= set(table["metric"])
    assert (table["count"] == 16).all()
    ssim = table[(table["metric"] == "ssim") & (table["attack"] == "decoder")].iloc[0]
    assert ssim["low"] <= ssim["value"] <= ssim["high"]
    for floor in ("floor_mean_image", "floor_random_image", "floor_untrained"):
        assert -1 <= ssim[floor] < 1, floor
    pictures = load_file(run.path / "attacks" / "analytic" / "reconstructions.safetensors")
    assert pictures["original"].shape == (16, 16, 16, 3)
    assert len(pictures) == 5  # two ways under two threat models
    assert json.loads((run.path / "attacks" / "decoder" / "history.json").read_text())
    assert "decoder" in run.report_path.read_text()

    second = permsplit(*arguments)
    assert second.returncode == 0, second.stderr
    both = RunFolder.open(run.path).attacks()
    assert len(both) == 2 * len(table)
    again = both.iloc[len(table) :].reset_index(drop=True)
    assert again.equals(table.reset_index(drop=True))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--attacker", "decodr"), "Invalid value for --attacker: unknown: decodr; allowed is"),
        (("--attacker", ","), "Invalid value for --attacker: name one at least"),
        (("--attacker", "decoder", "--metrics", "ssimm"), "for --metrics: unknown: ssimm; allowed"),
        (("--attacker", "decoder", "--client", 7), "client = 7: must be 0 .. 1"),
        (("--attacker", "decoder", "--images", 0), "0 is not in the range"),
        (("--attacker", "decoder", "--ray-address", "127.0.0.1:1"), "nobody answers there"),
    ],
)
def test_bad_options_are_one_clear_error(
    tmp_path: Path, arguments: tuple[object, ...], said: str
) -> None:
    assert said in refused(finished_run(tmp_path).path, *arguments)


def test_what_is_no_run_is_said(tmp_path: Path) -> None:
    assert "no such folder" in refused(tmp_path / "nothing", "--attacker", "decoder")
    run = finished_run(tmp_path)
    (run.path / "run.json").write_text("{")
    assert "run.json cannot be read" in refused(run.path, "--attacker", "decoder")
