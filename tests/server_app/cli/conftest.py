# SPDX-License-Identifier: Apache-2.0
"""A toy Flower app that takes all run keys, and the command line in a process of its own."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import tomli_w

from config import RunConfig

ROOT = Path(__file__).resolve().parents[3]
TOY = Path(__file__).with_name("toy")


@pytest.fixture
def toy_app(tmp_path: Path) -> Path:
    """Folder of a Flower app whose ``seed`` decides what happens: see ``toy/toy_server.py``."""
    folder = tmp_path / "toy-app"
    shutil.copytree(TOY, folder, ignore=shutil.ignore_patterns("__pycache__"))
    app = {
        "publisher": "permsplit",
        "components": {"serverapp": "toy_server:app", "clientapp": "toy_client:app"},
        "config": RunConfig().model_dump(by_alias=True),
    }
    project = {"name": "toy", "version": "0.1.0", "description": "toy", "license": "Apache-2.0"}
    project |= {"dependencies": ["flwr"], "requires-python": ">=3.11"}
    document = {"project": project, "tool": {"flwr": {"app": app}}}
    (folder / "pyproject.toml").write_text(tomli_w.dumps(document), encoding="utf-8")
    return folder


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Starts ``permsplit`` with arguments, in ``tmp_path``."""

    def start(*arguments: str) -> subprocess.Popen[str]:
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        return subprocess.Popen(
            [sys.executable, "-m", "server_app.cli", *arguments],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return start
