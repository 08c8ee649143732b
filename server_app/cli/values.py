# SPDX-License-Identifier: Apache-2.0
"""The values of a run's keys: a preset, then ``key=value`` assignments, then absolute paths."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

from config import Problem, RunConfig

PATH_KEYS = ("runs-dir", "state-dir", "key-dir", "cache-dir")
_TRUTH = {"true": True, "false": False}


def parse_assignments(texts: Iterable[str]) -> tuple[dict[str, object], list[Problem]]:
    """The values of ``key=value`` texts, each of its key's type, and what is wrong with the texts.

    A later value of a key replaces an earlier one.
    """
    values: dict[str, object] = {}
    problems = []
    for text in texts:
        key, equals, value = text.partition("=")
        if equals:
            values[key.strip()] = parse_value(key.strip(), value.strip())
        else:
            problems.append(Problem("--set", text, "write KEY=VALUE"))
    return values, problems


def parse_value(key: str, text: str) -> object:
    """``text`` as a TOML value, or a string if it is none, in the type of ``key`` if that is clear.

    ``lr-client=1`` is the float 1.0, ``rounds=1e3`` the integer 1000, ``run-name=7`` the string
    ``"7"``, ``resume=True`` true. What does not fit is left as it is for the validation to name.
    """
    value = _toml_value(text)
    kind = _key_type(key)
    if kind is str:
        return value if isinstance(value, str) else text
    if kind is bool and isinstance(value, str):
        return _TRUTH.get(value.lower(), value)
    if kind is float and type(value) is int:
        return float(value)
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def absolute_paths(values: Mapping[str, object], base: Path) -> dict[str, object]:
    """``values`` with every relative path resolved against ``base``.

    The ServerApp and the clients run in folders of Flower's and Ray's choosing.
    """
    result = dict(values)
    for key in PATH_KEYS:
        if result.get(key):
            result[key] = _absolute(result[key], base)
    if result.get("attack-face"):
        result["attack-face"] = absolute_face(str(result["attack-face"]), base)
    if _is_weights_file(result.get("weights")):
        result["weights"] = _absolute(result["weights"], base)
    source, colon, place = str(result.get("data", "")).partition(":")
    if source == "celeba" and colon and place:
        result["data"] = f"celeba:{_absolute(place, base)}"
    return result


def absolute_face(face: str, base: Path) -> str:
    """A value of ``attack-face``; a file's path resolved against ``base``."""
    return face if face.startswith("timm:") else _absolute(face, base)


def new_run_name(preset: str, runs_dir: Path, now: datetime) -> str:
    """A name that no folder in ``runs_dir`` has: ``<preset>-YYYYmmdd-HHMMSS``."""
    stem = Path(preset).stem if preset.endswith(".toml") else preset
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", stem).lstrip(".") or "run"
    name = f"{stem}-{now:%Y%m%d-%H%M%S}"
    taken = 1
    while (runs_dir / (name if taken == 1 else f"{name}-{taken}")).exists():
        taken += 1
    return name if taken == 1 else f"{name}-{taken}"


def _toml_value(text: str) -> object:
    try:
        document = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return document["value"] if len(document) == 1 else text


def _key_type(key: str) -> Any:
    """``int``, ``float``, ``bool`` or ``str``; None for an unknown key."""
    for field in RunConfig.model_fields.values():
        if field.alias == key:
            choices = get_args(field.annotation)
            return type(choices[0]) if choices else field.annotation
    return None


def _is_weights_file(weights: object) -> bool:
    return isinstance(weights, str) and bool(weights) and weights.partition(":")[0] != "hub"


def _absolute(path: object, base: Path) -> str:
    return str((base / Path(str(path)).expanduser()).resolve())
