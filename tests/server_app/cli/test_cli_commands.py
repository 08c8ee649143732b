# SPDX-License-Identifier: Apache-2.0
"""The commands without Flower: what they print and how they exit."""

import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

import server_app.cli.app_folder as app_folder_module
import server_app.cli.launch
from config import keys
from server_app.cli import app
from server_app.cli.launch import Outcome
from server_app.cli.plan import RunPlan
from server_app.cli.registry import COMMANDS

invoke = CliRunner().invoke


def test_help_lists_all_commands() -> None:
    result = invoke(app, ["--help"])
    assert result.exit_code == 0
    assert all(name in result.output for name in COMMANDS)


def test_configuration_errors_are_all_named_without_a_traceback() -> None:
    result = invoke(app, ["run", "--set", "rounds=0", "--set", "poool=cls", "--set", "x"])
    assert result.exit_code == 2
    assert "3 problems" in result.output
    assert "did you mean 'pool'?" in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--preset", "nosuch"], "allowed is one of"),
        (["run", "--clients", "1"], "more than --clients 1"),
        (["run", "--resume", "nosuch"], "holds a readable config.toml"),
        (["run", "--resume", "a", "--preset", "smoke"], "does not go with --resume"),
        (["run", "--app", "/"], "no pyproject.toml there"),
        (["keygen", "--dir", "k"], "nothing to write"),
        (["doctor", "--set", "rounds=x"], "valid integer"),
    ],
)
def test_what_cannot_work_is_refused(arguments: list[str], message: str) -> None:
    result = invoke(app, arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output


def test_a_wheel_says_that_a_checkout_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_folder_module, "CHECKOUT", tmp_path)
    result = invoke(app, ["run"])
    assert result.exit_code == 2
    assert "run it from a checkout" in result.output


def test_run_passes_its_plan_and_the_exit_code(
    tmp_path: Path, toy_app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = []

    def launch(plan: RunPlan, _: object) -> Outcome:
        plans.append(plan)
        return Outcome(exit_code=130, error="first\nstopped by SIGINT")

    monkeypatch.setattr(server_app.cli.launch, "launch", launch)
    monkeypatch.chdir(tmp_path)
    arguments = ["run", "--app", "toy-app", "--set", "lr-client=1", "--clients", "4"]
    result = invoke(app, [*arguments, "--client-gpus", "0.5", "--ray-address", "auto"])
    assert result.exit_code == 130
    assert "Failed: stopped by SIGINT" in result.output
    (plan,) = plans
    assert (plan.clients, plan.client_cpus, plan.client_gpus) == (4, 1, 0.5)
    assert (plan.app, plan.ray_address) == (toy_app, "auto")
    assert plan.config.lr_client == 1.0
    assert plan.folder.parent == tmp_path / "runs"
    assert plan.folder.name.startswith("smoke-")


def test_keys_lists_every_key() -> None:
    result = invoke(app, ["keys"])
    assert result.exit_code == 0
    assert all(f" {key} " in result.output for key in keys())
    assert "averaged | private | frozen" in result.output


def test_keygen_writes_private_files_and_never_over_one(tmp_path: Path) -> None:
    arguments = ["keygen", "--dir", str(tmp_path / "keys"), "--clients", "2", "--column"]
    assert invoke(app, arguments).exit_code == 0
    files = sorted((tmp_path / "keys").iterdir())
    assert [file.name for file in files] == ["client-000.key", "client-001.key", "column.key"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert len({file.read_text() for file in files}) == 3
    again = invoke(app, arguments)
    assert again.exit_code == 2
    assert "never overwritten" in again.output


def test_report_refuses_what_is_no_run(tmp_path: Path) -> None:
    result = invoke(app, ["report", str(tmp_path)])
    assert result.exit_code == 1
    assert "not a run" in result.output
    assert "Traceback" not in result.output
