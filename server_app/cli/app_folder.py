# SPDX-License-Identifier: Apache-2.0
"""Where the Flower app lives that the commands start."""

import tomllib
from pathlib import Path

from config import ConfigError, Problem

CHECKOUT = Path(__file__).resolve().parents[2]


def app_folder(given: Path | None) -> Path:
    """The folder of the Flower app: ``given``, or the checkout that this file lies in.

    Raises
    ------
    ConfigError
        If the folder holds no Flower app, as where the package is installed from a wheel.
    """
    folder = (given or CHECKOUT).expanduser().resolve()
    problem = _problem(folder / "pyproject.toml")
    if problem is None:
        return folder
    if given is None:
        problem += (
            "; permsplit is installed without its sources: run it from a checkout, "
            "or name one with --app DIR"
        )
    raise ConfigError([Problem("--app", str(folder), problem)])


def _problem(pyproject: Path) -> str | None:
    if not pyproject.is_file():
        return "no pyproject.toml there"
    try:
        tool = tomllib.loads(pyproject.read_text(encoding="utf-8")).get("tool", {})
    except tomllib.TOMLDecodeError as error:
        return f"its pyproject.toml is not valid TOML: {error}"
    if "app" not in tool.get("flwr", {}):
        return "its pyproject.toml has no [tool.flwr.app]: not a Flower app"
    return None
