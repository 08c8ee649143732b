# SPDX-License-Identifier: Apache-2.0
"""The notebooks run from top to bottom, and are stored without what they put out."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
LARGEST = 200_000
CELL_SECONDS = 1_200
"""For a cell that hangs; a notebook is meant to take a minute or two."""


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Takes what a notebook writes; Ray's sockets want shorter paths than those of ``tmp_path``."""
    with TemporaryDirectory(prefix="nb-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def test_the_notebooks_are_there() -> None:
    names = {path.stem for path in NOTEBOOKS}
    assert {"01-first-run", "02-privacy-utility", "03-what-an-attacker-sees"} <= names


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_without_outputs(path: Path) -> None:
    assert path.stat().st_size < LARGEST
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert cells
    for cell in cells:
        assert cell.outputs == [], cell.source
        assert cell.execution_count is None, cell.source


@pytest.mark.slow
@pytest.mark.timeout(2 * CELL_SECONDS)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_from_top_to_bottom(
    path: Path, short_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(short_folder))
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, kernel_name="python3", timeout=CELL_SECONDS,
        resources={"metadata": {"path": str(FOLDER)}},
    )  # fmt: skip
    client.execute()  # raises with the cell and its traceback
    shown = [
        output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs
    ]
    assert any("image/png" in output.get("data", {}) for output in shown)
