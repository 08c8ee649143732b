# SPDX-License-Identifier: Apache-2.0
"""Values of run keys: their types, their order of precedence, their paths, their problems."""

from datetime import datetime
from pathlib import Path

import pytest

from config import ConfigError, RunConfig
from server_app.cli.plan import number_of_clients, resolve_config, resume_config
from server_app.cli.values import absolute_paths, new_run_name, parse_assignments, parse_value


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("rounds", "3", 3),
        ("rounds", "1e3", 1000),  # an integer written as a float
        ("rounds", "1.5", 1.5),  # no integer: left to the validation
        ("rounds", "many", "many"),
        ("lr-client", "1", 1.0),
        ("lr-client", "2e-3", 2e-3),
        ("trunk-amp", "true", True),
        ("trunk-amp", "True", True),
        ("trunk-amp", "yes", "yes"),
        ("schedule", "splitfed-v1", "splitfed-v1"),  # a bare word
        ("schedule", '"parallel"', "parallel"),
        ("defences", "lp:0.05,gn:0.5", "lp:0.05,gn:0.5"),
        ("defences", '""', ""),
        ("defences", "", ""),
        ("run-name", "7", "7"),
        ("run-name", "2026-01-31", "2026-01-31"),  # a date in TOML
        ("permute", "row+column", "row+column"),
        ("data", "celeba:/a b/c", "celeba:/a b/c"),
        ("unknown", "3", 3),
        ("data", "a\nseed = 4", "a\nseed = 4"),  # one value, not two
    ],
)
def test_value_has_the_type_of_its_key(key: str, text: str, value: object) -> None:
    parsed = parse_value(key, text)
    assert parsed == value
    assert type(parsed) is type(value)


def test_last_assignment_wins_and_texts_without_equals_are_named() -> None:
    values, problems = parse_assignments(["seed=1", "seed=2", "defences=a=b", "oops"])
    assert values == {"seed": 2, "defences": "a=b"}
    assert [problem.value for problem in problems] == ["oops"]


def test_paths_become_absolute(tmp_path: Path) -> None:
    values = {"runs-dir": "runs", "state-dir": "/s", "key-dir": "", "cache-dir": "../cache"}
    values |= {"data": "celeba:faces", "weights": "w.safetensors"}
    assert absolute_paths(values, tmp_path) == {
        "runs-dir": str(tmp_path / "runs"),
        "state-dir": "/s",
        "key-dir": "",
        "cache-dir": str(tmp_path.parent / "cache"),
        "data": f"celeba:{tmp_path / 'faces'}",
        "weights": str(tmp_path / "w.safetensors"),
    }


@pytest.mark.parametrize("key", ["data", "weights"])
@pytest.mark.parametrize("value", ["synthetic:10", "hf:flwrlabs/celeba", "hub", ""])
def test_what_is_no_path_stays(key: str, value: str) -> None:
    if key == "weights" and value not in ("hub", ""):
        pytest.skip("a file there")
    assert absolute_paths({key: value}, Path("/x")) == {key: value}


def test_run_names_do_not_collide(tmp_path: Path) -> None:
    now = datetime(2026, 1, 31, 12, 30, 5)
    name = new_run_name("smoke", tmp_path, now)
    assert name == "smoke-20260131-123005"
    (tmp_path / name).mkdir()
    assert new_run_name("smoke", tmp_path, now) == f"{name}-2"
    assert new_run_name("/else/my preset.toml", tmp_path, now) == "my-preset-20260131-123005"


def test_assignments_override_the_preset_and_options_both(tmp_path: Path) -> None:
    preset = tmp_path / "mine.toml"
    preset.write_text('rounds = 9\nseed = 5\nrun-name = "a"\n')
    config = resolve_config(
        str(preset), ["seed=6", "run-name=b"], overrides={"run-name": "c", "runs-dir": "/r"}
    )
    assert (config.rounds, config.seed, config.run_name, config.runs_dir) == (9, 6, "c", "/r")
    assert config.batch_size == RunConfig().batch_size


def test_all_problems_come_together(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_config(None, ["oops", "rounds=x", "bathc-size=3", "lr-client-end=1"])
    assert [problem.key for problem in caught.value.problems] == [
        "--set", "rounds", "bathc-size", "lr-client-end",
    ]  # fmt: skip
    assert "did you mean 'batch-size'" in str(caught.value)


def test_an_existing_run_is_not_started_again(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(ConfigError, match="exists; choose another"):
        resolve_config(None, [], overrides={"runs-dir": str(tmp_path), "run-name": "a"})


def test_resume_takes_the_runs_own_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "runs" / "a"
    run.mkdir(parents=True)
    (run / "config.toml").write_text("rounds = 4\nseed = 3\n")
    (run / "run.json").write_text('{"status": "stopped", "clients": 5}')
    monkeypatch.chdir(tmp_path)
    for name in ("a", "runs/a", str(run)):
        config = resume_config(name, ["rounds=8"], None)
        assert (config.rounds, config.seed, config.resume) == (8, 3, True)
        assert (config.runs_dir, config.run_name) == (str(run.parent), "a")
    assert number_of_clients(None, config) == 5
    with pytest.raises(ConfigError, match=r"holds a readable config\.toml"):
        resume_config("b", [], None)


def test_number_of_clients_fits_min_clients() -> None:
    assert number_of_clients(None, RunConfig()) == 2
    assert number_of_clients(3, RunConfig()) == 3
    with pytest.raises(ConfigError, match="more than --clients 1"):
        number_of_clients(1, RunConfig())
