# SPDX-License-Identifier: Apache-2.0
"""The app's bundle, which Flower builds for every run from what git does not ignore."""

import os
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from server_app.cli.health.finding import Examination, Finding
from server_app.cli.launch.environment import QUIET, script

LIMIT_MIB = 10.0
_TIMEOUT = 120.0


def bundle(examination: Examination) -> Iterator[Finding]:
    """Does the bundle build, is it small, and is no virtual environment in it?"""
    with tempfile.TemporaryDirectory(prefix="permsplit-") as folder:
        problem = _build(examination.app, Path(folder))
        fabs = list(Path(folder).glob("*.fab"))
        if not fabs:
            advice = "add what does not belong to the app to .gitignore"
            yield Finding("FAIL", "app bundle", f"flwr build failed: {problem}", advice)
            return
        yield bundle_finding(fabs[0], environments(examination.app))


def bundle_finding(fab: Path, venvs: list[str]) -> Finding:
    """How a built bundle stands, given the names of the virtual environments in the app folder."""
    with zipfile.ZipFile(fab) as archive:
        names = archive.namelist()
    size = fab.stat().st_size / 2**20
    detail = f"{len(names)} files, {size:.2f} of {LIMIT_MIB:.0f} MiB"
    for venv in venvs:
        if any(name.startswith(f"{venv}/") for name in names):
            advice = f"add '{venv}/' to .gitignore"
            return Finding("FAIL", "app bundle", f"holds the environment {venv}: {detail}", advice)
    if size > LIMIT_MIB / 2:
        advice = "add data, runs and notebooks' outputs to .gitignore"
        return Finding("WARN", "app bundle", detail, advice)
    return Finding("OK", "app bundle", detail)


def environments(app: Path) -> list[str]:
    """Names of the virtual environments directly in the app folder."""
    return sorted(path.parent.name for path in app.glob("*/pyvenv.cfg"))


def _build(app: Path, folder: Path) -> str:
    env = dict(os.environ) | QUIET | {"FLWR_HOME": str(folder), "TERM": "dumb", "COLUMNS": "200"}
    command = [script("flwr"), "build", "--app", str(app)]
    try:
        done = subprocess.run(
            command, cwd=folder, env=env, timeout=_TIMEOUT, capture_output=True, text=True
        )
    except subprocess.TimeoutExpired:
        return f"no end after {_TIMEOUT:.0f} s; is a large folder not ignored?"
    text = (done.stderr + done.stdout).replace("│", " ")
    return " ".join(text.split()).strip("╭─╮╰╯ ")
