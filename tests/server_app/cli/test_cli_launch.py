# SPDX-License-Identifier: Apache-2.0
"""Real launches of the toy app: exit codes, tracebacks, and nothing left behind."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from server_app.cli.launch.environment import script
from server_app.cli.launch.processes import PROC, processes_of
from server_app.cli.launch.superlink import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

Start = Callable[..., "subprocess.Popen[str]"]


def arguments(name: str, behaviour: int = 0) -> list[str]:
    """Arguments for a run of the toy; ``toy/toy_server.py`` lists the behaviours."""
    return ["run", "--app", "toy-app", "--run-name", name, "--set", f"seed={behaviour}"]


def facts(tmp_path: Path, name: str) -> dict[str, object]:
    values: dict[str, object] = json.loads((tmp_path / "runs" / name / "run.json").read_text())
    return values


def wait_for(path: Path, seconds: float = 180.0) -> None:
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"no {path}"
        time.sleep(0.2)


def children(pid: int) -> Iterator[tuple[int, str]]:
    """Ids and command lines of the direct children of a process."""
    for status in PROC.glob("[0-9]*/stat"):
        try:
            if int(status.read_text().rpartition(")")[2].split()[1]) == pid:
                command = (status.parent / "cmdline").read_text().replace("\0", " ")
                yield int(status.parent.name), command
        except OSError:
            continue


def assert_nothing_left(home: str) -> None:
    assert not Path(home).exists()
    assert processes_of(Path(home)) == []


def home_of(values: dict[str, object]) -> str:
    environment = values["environment"]
    assert isinstance(environment, dict)
    return str(environment["FLWR_HOME"])


def test_two_runs_side_by_side_complete_and_leave_nothing(
    tmp_path: Path, toy_app: Path, start: Start
) -> None:
    runs = {name: start(*arguments(name)) for name in ("one", "two")}
    for name, process in runs.items():
        output = process.communicate()[0]
        assert process.returncode == 0, output
        assert "toy run ends with 2 replies" in output
        assert "WARNING: toy warning" in output
        assert re.search(r"\[client \d+\] toy client 0 /tmp/permsplit-\w+/apps/", output)
        assert "flwr federation" not in output
        values = facts(tmp_path, name)
        assert values["status"] == "finished"
        config = values["config"]
        assert isinstance(config, dict)
        assert config["runs-dir"] == str(tmp_path / "runs")
        assert config["state-dir"] == str(tmp_path / "client-state")
        assert_nothing_left(home_of(values))
    assert home_of(facts(tmp_path, "one")) != home_of(facts(tmp_path, "two"))


def test_a_failure_shows_its_tracebacks_and_a_nonzero_code(
    tmp_path: Path, toy_app: Path, start: Start
) -> None:
    """A client fails, and the server because of it."""
    process = start(*arguments("bad", 1))
    output = process.communicate()[0]
    assert process.returncode == 1
    log = (tmp_path / "runs" / "bad" / "log.txt").read_text()
    for side, message in (
        ("client", "ValueError: the client meant to fail"),
        ("server", "RuntimeError: a client failed"),
    ):
        assert message in output
        assert message in log
        assert re.search(rf"toy_{side}\.py\", line \d+, in train", output), side
    assert facts(tmp_path, "bad")["status"] == "failed"
    assert_nothing_left(home_of(facts(tmp_path, "bad")))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_ctrl_c_stops_the_run(tmp_path: Path, toy_app: Path, start: Start) -> None:
    process = start(*arguments("hang", 2))
    wait_for(tmp_path / "runs" / "hang" / "progress.json")
    process.send_signal(signal.SIGINT)
    output = process.communicate()[0]
    assert process.returncode == 130, output
    values = facts(tmp_path, "hang")
    assert (values["status"], values["error"]) == ("stopped", "stopped by SIGINT")
    assert_nothing_left(home_of(values))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_death_of_the_superlink_ends_the_run(
    tmp_path: Path, toy_app: Path, start: Start
) -> None:
    process = start(*arguments("hang", 2))
    wait_for(tmp_path / "runs" / "hang" / "progress.json")
    (superlink,) = [pid for pid, command in children(process.pid) if "flower-superlink" in command]
    os.kill(superlink, signal.SIGKILL)
    output = process.communicate()[0]
    assert process.returncode == 1
    assert "the SuperLink ended with code -9" in output
    values = facts(tmp_path, "hang")
    assert values["status"] == "failed"
    assert_nothing_left(home_of(values))


def test_a_broken_app_is_reported(tmp_path: Path, toy_app: Path, start: Start) -> None:
    program = (
        "import nothing_of_that_name\nfrom flwr.serverapp import ServerApp\napp = ServerApp()\n"
    )
    (toy_app / "toy_server.py").write_text(program)
    process = start(*arguments("broken"))
    output = process.communicate()[0]
    assert process.returncode == 1
    assert "No module named 'nothing_of_that_name'" in output
    assert (tmp_path / "runs" / "broken.log").is_file()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """Address of a Ray cluster of this test alone."""
    port = free_port()
    home = Path("/tmp") / f"ps-ray-{port}"
    env = os.environ | {"RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": str(home)}
    home.mkdir()
    command = [script("ray"), "start", "--head", "--port", str(port), "--num-cpus", "2"]
    command += ["--include-dashboard=false", "--block"]
    with subprocess.Popen(
        command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        address = f"127.0.0.1:{port}"
        _wait_for_cluster(address, env)
        yield address
        process.terminate()  # with --block it takes its processes along
        process.wait(60)
    subprocess.run(["rm", "-rf", str(home)], check=True)


def _wait_for_cluster(address: str, env: dict[str, str]) -> None:
    command = [script("ray"), "health-check", "--address", address]
    deadline = time.monotonic() + 60
    while subprocess.run(command, env=env, capture_output=True, check=False).returncode:
        assert time.monotonic() < deadline, f"no Ray at {address}"
        time.sleep(0.5)


def test_a_running_cluster_is_joined(
    tmp_path: Path, toy_app: Path, start: Start, cluster: str
) -> None:
    process = start(*arguments("joined"), "--ray-address", cluster)
    output = process.communicate()[0]
    assert process.returncode == 0, output
    values = facts(tmp_path, "joined")
    environment = values["environment"]
    assert isinstance(environment, dict)
    assert environment["RAY_ADDRESS"] == cluster
    assert home_of(values).startswith(str(tmp_path / "runs"))
    assert_nothing_left(home_of(values))


def test_doctor_finds_this_machine_fit(start: Start) -> None:
    process = start("doctor")
    output = process.communicate()[0]
    assert process.returncode == 0, output
    assert "OK    Ray: a Ray of its own" in output
    assert "OK    app bundle" in output
