# SPDX-License-Identifier: Apache-2.0
"""Presets and the app's own table of defaults."""

import tomllib
from pathlib import Path

import pytest

from config import ConfigError, RunConfig, keys, load_preset, parse_run_config, preset_names
from server_app.checks import RULES

ROOT = Path(__file__).resolve().parents[2]
DEFAULTS = RunConfig().model_dump(by_alias=True)


def test_the_app_table_is_exactly_the_defaults() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    table = project["tool"]["flwr"]["app"]["config"]
    assert tuple(table) == keys()
    assert {key: (type(v), v) for key, v in table.items()} == {
        key: (type(v), v) for key, v in DEFAULTS.items()
    }


def test_smoke_is_exactly_the_defaults() -> None:
    assert load_preset("smoke") == DEFAULTS


def test_every_preset_file_has_a_name() -> None:
    assert set(preset_names()) == {path.stem for path in (ROOT / "presets").glob("*.toml")}
    assert "smoke" in preset_names()


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_a_sound_configuration(name: str) -> None:
    parse_run_config(load_preset(name), rules=RULES)


def test_a_path_is_a_preset_too(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("rounds = 3\n")
    assert load_preset(str(file)) == {"rounds": 3}


def test_an_unknown_preset_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r'preset = "smke": not found; allowed is one of .*smoke'):
        load_preset("smke")


def test_broken_toml_is_a_problem_of_the_preset(tmp_path: Path) -> None:
    file = tmp_path / "broken.toml"
    file.write_text("rounds = = 3\n")
    with pytest.raises(ConfigError, match="not valid TOML"):
        load_preset(str(file))
