# SPDX-License-Identifier: Apache-2.0
"""From a run's folder to rows: what options change, and what they leave."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from finished import finished_run

from attacks import AttackError, AttackOptions, assess, check_attack
from config import ConfigError, parse_run_config
from server_app.checks import RULES

OPTIONS = AttackOptions(images=8, epochs=1, metrics="psnr,ssim")


def silent(stage: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


def test_metrics_are_those_asked_for_and_a_face_network_is_named(tmp_path: Path) -> None:
    run = finished_run(tmp_path)
    options = replace(OPTIONS, metrics="psnr", face="timm:resnet10t")
    rows = assess(run.path, "analytic", options, silent)
    of_images = {row["metric"]: row for row in rows if row["metric"] != "position_accuracy"}
    assert set(of_images) == {"psnr", "f_sim"}
    assert str(of_images["f_sim"]["embedder"]).startswith("timm:resnet10t")
    assert of_images["psnr"]["embedder"] == ""


def test_what_was_learned_is_scored_again_without_learning_it_again(tmp_path: Path) -> None:
    run = finished_run(tmp_path)
    first = assess(run.path, "decoder", OPTIONS, silent)
    folder = run.path / "attacks" / "decoder"
    learned = {file: file.stat().st_mtime_ns for file in folder.glob("decoder*.safetensors")}
    assert learned
    again = assess(run.path, "decoder", replace(OPTIONS, metrics="ssim"), silent)
    assert [row for row in first if row["metric"] == "ssim"] == again
    assert {file: file.stat().st_mtime_ns for file in learned} == learned
    assert json.loads((folder / "options.json").read_text())["metrics"] == "ssim"

    assess(run.path, "decoder", replace(OPTIONS, seed=1), silent)
    assert all(file.stat().st_mtime_ns > before for file, before in learned.items())


def test_two_processes_do_not_let_one_attacker_at_a_run(tmp_path: Path) -> None:
    run = finished_run(tmp_path)

    def second(stage: str, done: int, total: int) -> None:
        with pytest.raises(AttackError, match="decoder: another process lets it at"):
            assess(run.path, "decoder", OPTIONS, silent)

    assert assess(run.path, "decoder", OPTIONS, second)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"metrics": "ssim,ssimm"}, "unknown: ssimm; allowed is a comma list of ssim, psnr"),
        ({"metrics": ""}, "none is named"),
        ({"face": "timm:no_such_net"}, "attack-face = timm:no_such_net: timm has no such model"),
        ({"face": "no-such.onnx"}, "no such file"),
    ],
)
def test_scores_that_cannot_be_had_are_told_before_any_work(
    tmp_path: Path, options: dict[str, str], said: str
) -> None:
    run = finished_run(tmp_path)
    with pytest.raises(AttackError, match=said):
        check_attack(run, ["decoder"], replace(OPTIONS, **options))
    assert not (run.path / "attacks").exists()


def test_a_run_that_could_not_be_scored_does_not_start() -> None:
    with pytest.raises(ConfigError) as error:
        parse_run_config({"attack-metrics": "ssim,f_sim", "attack-face": "faces.onnx"}, RULES)
    assert "attack-metrics" in str(error.value)
    assert "attack-face" in str(error.value)
