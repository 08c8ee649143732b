# SPDX-License-Identifier: Apache-2.0
"""``permsplit sweep``: a true sweep whose machine dies, and what it refuses."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import tomli_w
from finished import write_checkpoint
from typer.testing import CliRunner

from reports import RunFolder
from server_app.cli import app
from server_app.cli.launch.processes import PROC, processes_of
from server_app.sweep import load_sweep, plan_trials

ROOT = Path(__file__).resolve().parents[3]

TINY = {
    "data": "synthetic:300",
    "image-size": 16,
    "patch-size": 4,
    "dim": 48,
    "depth": 1,
    "heads": 2,
    "auxiliary": 0.3,
    "rounds": 12,
    "steps-per-round": 2,
    "batch-size": 6,
    "evaluate-batch-size": 16,
    "evaluate-every": 0,
    "attack": "analytic",
    "attack-images": 8,
}


def start(folder: Path, *arguments: object) -> "subprocess.Popen[str]":
    """``permsplit sweep`` with all its processes marked by ``folder``."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(
        [sys.executable, "-m", "server_app.cli", "sweep", *map(str, arguments)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "MARK": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def written(folder: Path, **fields: object) -> Path:
    """A sweep of two trials."""
    document = {"name": "tiny", "clients": 2, "set": TINY, "grid": {"permute": ["none", "row"]}}
    file = folder / "sweep.toml"
    file.write_text(tomli_w.dumps(document | fields))
    return file


def homes(pids: list[int]) -> Iterator[Path]:
    """The temporary folders of launched runs, which a killed machine would leave behind."""
    for pid in pids:
        try:
            entries = (PROC / str(pid) / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        for entry in entries:
            if entry.startswith(b"FLWR_HOME="):
                yield Path(entry.removeprefix(b"FLWR_HOME=").decode())


def kill_machine(folder: Path) -> None:
    """End all processes of a sweep at once, without a word to any of them."""
    left_behind: set[Path] = set()
    while pids := processes_of(folder):
        left_behind |= set(homes(pids))
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.1)
    for home in left_behind:
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(autouse=True)
def _nothing_left(tmp_path: Path) -> Iterator[None]:
    """A test that fails in the middle leaves no sweep at work."""
    yield
    kill_machine(tmp_path)


def wait_for(path: Path, process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + 600
    while not path.exists():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline, f"no {path}"
        time.sleep(0.05)


def finished_but_for_the_attack(file: Path, folder: Path) -> None:
    """A trial's folder as its training would leave it."""
    trials = plan_trials(load_sweep(str(file)), folder.parent, "test")
    (config,) = (trial.config for trial in trials if trial.folder == folder)
    run = RunFolder.create(folder.parent, folder.name, config.model_dump(by_alias=True))
    run.add_facts({"clients": 2})
    write_checkpoint(run, config, round=config.rounds)
    run.set_status("finished")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not PROC.is_dir(), reason="finds the processes of a sweep in /proc")
def test_a_sweep_survives_a_killed_machine(tmp_path: Path) -> None:
    file, place = written(tmp_path), tmp_path / "runs" / "tiny"
    first, second = place / "permute-none_seed-0", place / "permute-row_seed-0"
    killed = start(tmp_path, file)
    try:
        wait_for(first / "checkpoints" / "round-0002", killed)
    finally:
        kill_machine(tmp_path)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    assert RunFolder.open(first).facts()["status"] == "running"
    table = pd.read_parquet(place / "trials.parquet").set_index("trial")
    assert table["status"].tolist() == ["pending", "pending"]
    finished_but_for_the_attack(file, second)

    continued = start(tmp_path, file)
    output = continued.communicate(timeout=900)[0]
    assert continued.returncode == 0, output
    assert f"{first.name}: continued from its checkpoint" in output
    assert f"{second.name}: attacked, as its training is complete" in output
    assert "Completed: 2 trials" in output
    table = pd.read_parquet(place / "trials.parquet").set_index("trial")
    assert table["status"].tolist() == ["finished", "finished"]
    assert (table["seconds"] > 0).all()
    for folder in (first, second):
        run = RunFolder.open(folder)
        assert run.facts()["status"] == "finished"
        assert set(run.attacks()["attack"]) == {"analytic"}
    metrics = RunFolder.open(first).metrics()
    rounds = metrics[(metrics["metric"] == "loss") & (metrics["client"] == -1)]["round"]
    assert sorted(set(rounds)) == list(range(1, 13))
    assert RunFolder.open(first).facts()["resumed"][0]["after_round"] >= 2
    assert "2 trials (2 finished)" in (place / "report.md").read_text()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_failure_in_an_attack_is_a_row_that_can_be_tried_again(tmp_path: Path) -> None:
    decoder = {**TINY, "rounds": 1, "attack": "decoder", "attack-epochs": 1}
    file, place = written(tmp_path, set=decoder, grid={}), tmp_path / "runs" / "tiny"
    (trial,) = plan_trials(load_sweep(file), place, "test")
    run = RunFolder.create(place, trial.name, trial.config.model_dump(by_alias=True))
    run.add_facts({"clients": 2})
    write_checkpoint(run, trial.config, round=1)
    in_the_way = run.path / "attacks" / "decoder"
    in_the_way.parent.mkdir()
    in_the_way.write_text("a file where the attacker's folder goes")

    broken = start(tmp_path, file)
    output = broken.communicate(timeout=900)[0]
    assert broken.returncode == 1, output
    assert "Failed: 1 of 1 trials" in output
    (row,) = pd.read_parquet(place / "trials.parquet").to_dict("records")
    assert row["status"] == "failed"
    assert "FileExistsError" in row["error"]
    assert "\n" not in row["error"]
    assert row["error"] in (place / "report.md").read_text()
    log = (place / f"{trial.name}.log").read_text()
    assert re.search(r"assess\.py\", line \d+, in ", log)  # of the task on Ray

    in_the_way.unlink()
    mended = start(tmp_path, file, "--retry-failed")
    output = mended.communicate(timeout=900)[0]
    assert mended.returncode == 0, output
    assert run.facts()["status"] == "finished"
    assert set(run.attacks()["attack"]) == {"decoder"}


def test_problems_are_told_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = written(tmp_path, set={**TINY, "bach-size": 3}, sedes=[1])
    result = CliRunner().invoke(app, ["sweep", str(file), "--set", "cut=7"])
    assert result.exit_code == 2, result.exception
    assert "sedes = [1]: unknown field; did you mean 'seeds'?" in result.output
    assert not (tmp_path / "runs").exists()


def test_a_dry_run_does_nothing_but_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = str(written(tmp_path))
    result = CliRunner().invoke(app, ["sweep", file, "--dry-run", "--runs-dir", "there"])
    assert result.exit_code == 0, result.exception
    assert result.output.count("permsplit run --preset smoke --clients 2") == 2
    assert str(tmp_path / "there" / "tiny") in result.output
    assert not (tmp_path / "there").exists()
