# SPDX-License-Identifier: Apache-2.0
"""Presets: named TOML files of run keys, in the top-level folder ``presets``."""

import tomllib
from pathlib import Path

from config.problems import ConfigError, Problem

PRESETS_FOLDER = Path(__file__).resolve().parent.parent / "presets"


def preset_names() -> tuple[str, ...]:
    """The names of all presets, sorted."""
    return tuple(sorted(path.stem for path in PRESETS_FOLDER.glob("*.toml")))


def load_preset(name: str) -> dict[str, object]:
    """The flat run keys of preset ``name``; a path to a TOML file works too.

    Raises
    ------
    ConfigError
        If there is no such preset, or the file is not valid TOML.
    """
    path = Path(name) if name.endswith(".toml") else PRESETS_FOLDER / f"{name}.toml"
    if not path.is_file():
        allowed = f"one of {', '.join(preset_names())}, or a path to a .toml file"
        raise ConfigError([Problem("preset", name, f"not found; allowed is {allowed}")])
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError([Problem("preset", name, f"not valid TOML: {error}")]) from error
