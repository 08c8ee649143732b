# SPDX-License-Identifier: Apache-2.0
"""Runs on disk as a server would have left them."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from reports import RunFolder
from tests.reports.fake_run import CONFIG, MakeRun, fake_sweep, fill


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """A function that makes a complete run of two rounds; its config can be changed by keyword."""

    def make(name: str = "first", *, full: bool = True, **changes: object) -> RunFolder:
        changed = {key.replace("_", "-"): value for key, value in changes.items()}
        run = RunFolder.create(tmp_path / "runs", name, CONFIG | {"run-name": name} | changed)
        if full:
            fill(run)
        return run

    return make


@pytest.fixture
def run(make_run: MakeRun) -> RunFolder:
    """A complete run."""
    return make_run()


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are made but not rendered, which takes most of the time of a report."""

    def save(figure: Figure, path: Path) -> Path:
        return path

    monkeypatch.setattr("reports.canvas.save", save)


@pytest.fixture(scope="session")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a sweep like the paper's Table 6, with a failed and a pending trial."""
    return fake_sweep(tmp_path_factory.mktemp("sweep"))
