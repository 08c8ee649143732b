# SPDX-License-Identifier: Apache-2.0
"""``permsplit attack``: attackers as Ray tasks, from a run's folder to its table."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from finished import finished_run
from safetensors.numpy import load_file

from reports import RunFolder


def permsplit(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "server_app.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


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


@pytest.mark.slow
def test_a_failure_in_a_task_shows_its_traceback(tmp_path: Path) -> None:
    run = finished_run(tmp_path)
    weights = run.latest_checkpoint() / "clients.safetensors"
    folder = run.path / "attacks" / "decoder"
    folder.mkdir(parents=True)
    (folder / "options.json").write_text("{")
    failed = permsplit("attack", run.path, "--attacker", "decoder", "--images", 4)
    assert weights.is_file()
    assert failed.returncode != 0
    assert "JSONDecodeError" in failed.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--attacker", "decodr"), "unknown: decodr; allowed is a comma list of decoder, position"),
        (("--attacker", "decoder", "--client", 7), "client = 7: must be 0 .. 1"),
        (("--attacker", "decoder", "--images", 0), "0 is not in the range"),
    ],
)
def test_bad_options_are_one_clear_error(
    tmp_path: Path, arguments: tuple[object, ...], said: str
) -> None:
    failed = permsplit("attack", finished_run(tmp_path).path, *arguments)
    assert failed.returncode != 0
    assert said in failed.stderr
    assert "Traceback" not in failed.stderr


def test_what_is_no_run_is_said(tmp_path: Path) -> None:
    failed = permsplit("attack", tmp_path / "nothing", "--attacker", "decoder")
    assert failed.returncode != 0
    assert "no such folder" in failed.stderr
    run = finished_run(tmp_path)
    (run.path / "run.json").write_text("{")
    failed = permsplit("attack", run.path, "--attacker", "decoder")
    assert failed.returncode != 0
    assert "run.json cannot be read" in failed.stderr
    assert "Traceback" not in failed.stderr
