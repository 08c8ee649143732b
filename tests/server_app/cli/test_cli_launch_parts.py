# SPDX-License-Identifier: Apache-2.0
"""Parts of a launch: environment, progress, the verdict, ending processes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from config import RunConfig
from server_app.cli.launch.environment import run_environment
from server_app.cli.launch.flower import FlowerRun, federation_config
from server_app.cli.launch.outcome import judge, mark_unfinished
from server_app.cli.launch.processes import end_processes, processes_of
from server_app.cli.launch.progress import Progress, read_progress
from server_app.cli.launch.stream import LogStream
from server_app.cli.launch.superlink import SuperLink, SuperLinkError, free_port


def environment(tmp_path: Path, address: str | None = None, **keys: object) -> dict[str, str]:
    config = RunConfig.model_validate({key.replace("_", "-"): keys[key] for key in keys})
    base = {"PATH": "/bin", "RAY_ADDRESS": "elsewhere:1", "FLWR_HOME": "/users", "MINE": "1"}
    return run_environment(base, home=tmp_path, config=config, ray_address=address)


def test_a_local_run_touches_nothing_of_the_users(tmp_path: Path) -> None:
    env = environment(tmp_path)
    assert env["FLWR_HOME"] == env["RAY_TMPDIR"] == str(tmp_path)
    assert "RAY_ADDRESS" not in env
    assert env["MINE"] == "1"
    assert env["PATH"].endswith(":/bin")
    assert env["FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION"] == "1"
    assert env["FLWR_TELEMETRY_ENABLED"] == env["RAY_USAGE_STATS_ENABLED"] == "0"


def test_a_cluster_is_joined_by_its_address(tmp_path: Path) -> None:
    env = environment(tmp_path, "10.0.0.1:6379")
    assert env["RAY_ADDRESS"] == "10.0.0.1:6379"
    assert "RAY_TMPDIR" not in env


@pytest.mark.parametrize(
    ("keys", "offline"),
    [({}, True), ({"data": "hf:flwrlabs/celeba"}, False), ({"weights": "hub"}, False)],
)
def test_the_hub_is_off_unless_needed(
    tmp_path: Path, keys: dict[str, object], offline: bool
) -> None:
    assert ("HF_HUB_OFFLINE" in environment(tmp_path, **keys)) is offline


def test_federation_config_has_no_init_args() -> None:
    assert federation_config(3, 1, 0) == (
        "num-supernodes=3 client-resources-num-cpus=1 client-resources-num-gpus=0.0"
    )


def test_progress_is_read_and_counts(tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    assert read_progress(path) is None
    path.write_text("{")
    assert read_progress(path) is None
    values = {"round": 2, "rounds": 4, "step": 5, "steps": 10, "phase": "train"}
    path.write_text(json.dumps(values | {"images_per_second": 1234.5, "updated": "now"}))
    progress = read_progress(path)
    assert progress is not None
    assert progress.fraction == pytest.approx(0.375)
    assert read_progress(path, since=path.stat().st_mtime + 1) is None
    assert str(progress) == "round 2/4 · train · step 5/10 · 1,234 images/s"


@pytest.mark.parametrize(
    ("values", "fraction"),
    [
        ({}, 0.0),
        ({"round": 0, "rounds": 4}, 0.0),
        ({"round": 5, "rounds": 4, "step": 9}, 1.0),
        ({"round": 1, "rounds": 4, "step": 1, "steps": 9, "phase": "test"}, 0.25),
    ],
)
def test_fraction_stays_between_0_and_1(values: dict[str, Any], fraction: float) -> None:
    assert Progress(**values).fraction == fraction


@pytest.mark.parametrize(
    ("status", "facts", "code", "error"),
    [
        ("finished:completed", {"status": "finished"}, 0, ""),
        ("finished:completed", None, 0, ""),
        ("finished:completed", {"status": "failed", "error": "T\nE: x"}, 1, "E: x"),
        ("finished:failed", {"status": "failed", "error": "T\nE: x"}, 1, "E: x"),
        ("finished:failed", {"status": "finished", "error": None}, 1, "because"),
        ("finished:failed", None, 1, "because"),
        ("finished:stopped", {"status": "running", "error": None}, 1, "stopped"),
        ("running", None, 1, "because"),
    ],
)
def test_flower_and_the_run_folder_must_both_be_content(
    tmp_path: Path, status: str, facts: dict[str, str] | None, code: int, error: str
) -> None:
    if facts is not None:
        (tmp_path / "run.json").write_text(json.dumps(facts))
    outcome = judge(FlowerRun(run_id="1", status=status, details="because"), tmp_path)
    assert outcome.exit_code == code
    assert not error or outcome.summary == error


def test_a_death_without_traceback_is_explained(tmp_path: Path) -> None:
    details = "No heartbeat received from the task"
    run = FlowerRun(run_id="1", status="finished:failed", details=details)
    assert "lack of memory" in judge(run, tmp_path).summary
    assert judge(None, tmp_path).exit_code == 1


def test_an_interrupted_run_is_marked(tmp_path: Path) -> None:
    from server_app.cli.launch import Outcome

    path = tmp_path / "run.json"
    for code, status in ((130, "stopped"), (1, "failed")):
        path.write_text('{"status": "running", "error": null}')
        mark_unfinished(tmp_path, Outcome(exit_code=code, error="why"))
        facts = json.loads(path.read_text())
        assert (facts["status"], facts["error"]) == (status, "why")
    mark_unfinished(tmp_path, Outcome(exit_code=0))
    assert json.loads(path.read_text())["status"] == "failed"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_processes_are_found_by_their_home_and_ended(tmp_path: Path) -> None:
    program = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(99)"
    env = {"FLWR_HOME": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", program], env=env, start_new_session=True
    ) as process:
        assert processes_of(tmp_path) == [process.pid]
        assert processes_of(tmp_path / "other") == []
        assert end_processes(tmp_path, patience=0.4) == []
        assert process.wait(5) < 0


def test_a_superlink_that_ends_at_once_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "flower-superlink").write_text("#!/bin/sh\necho no luck\nexit 3\n")
    (tmp_path / "flower-superlink").chmod(0o755)
    monkeypatch.setattr("server_app.cli.launch.superlink.script", lambda name: str(tmp_path / name))
    link = SuperLink(tmp_path, {}, timeout=5)
    with pytest.raises(SuperLinkError, match=r"ended with code 3(.|\n)*no luck"):
        link.start()
    link.stop()


def test_a_log_that_is_streamed_again_gives_each_line_once() -> None:
    stream = LogStream()

    def follow(text: str) -> list[str]:
        program = ["printf", "%b", text]
        with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
            return [line.strip() for line in stream.lines(process) if line]

    head = "Using SuperLink\n"
    start = "INFO :      Starting logstream for run_id `7`\n"
    first = follow(f"{head}Successfully started run 7\n{start}a\nb\n")
    assert first[-2:] == ["a", "b"]
    assert follow(f"{head}{start}a\nb\nb\nc\n")[-2:] == ["b", "c"]


def test_free_ports_are_free() -> None:
    assert free_port() > 1024
