# SPDX-License-Identifier: Apache-2.0
"""From a run's folder to rows: what options change, and what they leave."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from finished import finished_run
from safetensors import safe_open

from attacks import AttackError, AttackOptions, assess, check_attack
from config import ConfigError, parse_run_config
from server_app.checks import RULES, check_data

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
    with safe_open(folder / "reconstructions.safetensors", framework="pt") as file:
        assert file.metadata() == {"reconstruction": str(again[0]["value"])}
    auxiliary = json.loads((folder / "finished.json").read_text())["auxiliary"]
    assert auxiliary["images"] > auxiliary["people"] > 1

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


def test_a_run_that_could_not_be_scored_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(**keys: object) -> str:
        with pytest.raises(ConfigError) as error:
            parse_run_config({k.replace("_", "-"): v for k, v in keys.items()}, RULES)
        return str(error.value)

    text = said(attack_metrics="ssim,f_sim", attack_face="faces.onnx")
    assert 'attack-metrics = "ssim,f_sim"' in text
    assert 'attack-face = "faces.onnx": no such file' in text
    assert "timm has no such model" in said(attack_face="timm:no_such_net")
    junk = tmp_path / "junk.onnx"
    junk.write_bytes(b"no network")
    parse_run_config({"attack-face": str(junk)}, RULES)  # nobody attacks
    small = {"image_size": 8, "patch_size": 4, "attack_metrics": "ssim,lpips"}
    text = said(attack="decoder", attack_face=str(junk), **small)
    assert text.count("attack-face = ") == 1
    assert 'attack-metrics = "ssim,lpips": ' in text
    monkeypatch.setitem(sys.modules, "lpips", None)
    assert "permsplit[lpips]" in said(attack="decoder", attack_metrics="lpips")


def test_a_run_whose_attackers_would_have_nothing_does_not_start() -> None:
    keys = {"data": "synthetic:300", "attack": "decoder", "auxiliary": 0.001}
    (problem,) = check_data(parse_run_config(keys, RULES), clients=2)
    assert (problem.key, problem.value) == ("auxiliary", 0.001)
    assert check_data(parse_run_config({**keys, "auxiliary": 0.1}, RULES), clients=2) == []
    assert check_data(parse_run_config({**keys, "attack": ""}, RULES), clients=2) == []


def test_what_was_learned_but_is_broken_is_named(tmp_path: Path) -> None:
    run = finished_run(tmp_path)
    assess(run.path, "decoder", OPTIONS, silent)
    workshop = run.path / "attacks" / "decoder"
    for name in ("decoder.safetensors", "decoder-best.safetensors", "history.json"):
        file, content = workshop / name, (workshop / name).read_bytes()
        file.write_bytes(content[:-10])
        with pytest.raises(AttackError, match=rf"{name}: .*; remove .*decoder to learn again"):
            assess(run.path, "decoder", OPTIONS, silent)
        file.write_bytes(content)
    (workshop / "options.json").write_text("{half")
    assert assess(run.path, "decoder", OPTIONS, silent)  # nobody knows what that was: afresh
