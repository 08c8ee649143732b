# SPDX-License-Identifier: Apache-2.0
"""Reconstruction grids and learning curves, from what attacks leave in a run folder."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from reports import RunFolder, RunFolderError, Study
from reports.attack_prose import effort
from reports.effort import effort_table
from reports.learning import learning_table
from reports.learning_figure import learning_figure
from reports.picture_figures import picture_grid, run_pictures, study_pictures
from reports.reconstructions import reconstructions
from reports.report import write_report
from tests.reports.fake_run import BLACK_BOX, MakeRun, attacked, leave_pictures

WAYS = ("best", "per-token", "set")


def names(figure: object) -> list[str]:
    return [axes.texts[0].get_text() for axes in figure.axes]  # type: ignore[attr-defined]


def test_rows_are_the_original_and_each_way(run: RunFolder) -> None:
    leave_pictures(run, "decoder")
    leave_pictures(run, "position", WAYS)
    figure = run_pictures(run)
    assert names(figure) == [
        "original",
        "decoder\nSSIM 0.55",  # of these pictures; the table counts a try of 0.167
        "position, per-token\nSSIM 0.45",
        "position, set\nSSIM 0.35",
    ]


def test_other_victims_get_an_original_of_their_own(run: RunFolder) -> None:
    leave_pictures(run, "decoder")
    path = leave_pictures(run, "position")
    other = np.zeros((4, 8, 8, 3), dtype=np.uint8)
    save_file({"original": other, "reconstruction": other}, path)
    assert names(run_pictures(run)) == ["original", "decoder\nSSIM 0.55", "original", "position"]


def test_one_attacker_over_settings(make_run: MakeRun) -> None:
    runs = [make_run("row", full=False), make_run("none", full=False, permute="none"),
            make_run("bare", full=False, defences="")]  # fmt: skip
    for run, value in zip(runs[:2], (0.2, 0.6), strict=True):
        attacked(run, {BLACK_BOX: value}, 0.8)
        leave_pictures(run, "decoder")
    assert names(study_pictures(Study(runs), "decoder")) == [
        "original", "LP+GN 0.05, 0.5\nSSIM 0.55", "LP+GN 0.05, 0.5 + row\nSSIM 0.55",
    ]  # fmt: skip
    assert study_pictures(Study(runs), "position") is None


def test_pictures_are_shown_as_they_are() -> None:
    images = np.arange(2 * 4 * 4 * 3, dtype=np.uint8).reshape(2, 4, 4, 3)
    (axes,) = picture_grid([("original", images)]).axes
    drawn = axes.get_images()[0].get_array()
    assert drawn is not None
    side = drawn.shape[0]
    margin = side // 34
    step = (side - 2 * margin) // 4
    for number in range(2):
        inner = drawn[margin : side - margin, number * side + margin : (number + 1) * side - margin]
        np.testing.assert_array_equal(inner[::step, ::step], images[number])


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"original": (2, 8, 8, 3)}, "no 'reconstruction'"),
        ({"reconstruction": (2, 8, 8, 3)}, "no 'original'"),
        ({"original": (2, 8, 8, 3), "reconstruction": (2, 4, 4, 3)}, r"must be uint8 .*like"),
    ],
)
def test_files_of_anything_else_are_refused(
    run: RunFolder, tensors: dict[str, tuple[int, ...]], message: str
) -> None:
    path = leave_pictures(run, "decoder")
    save_file({name: np.zeros(shape, dtype=np.uint8) for name, shape in tensors.items()}, path)
    with pytest.raises(RunFolderError, match=message):
        reconstructions(run, "decoder")


@pytest.mark.usefixtures("undrawn")
def test_a_broken_file_does_not_cost_the_report(run: RunFolder) -> None:
    path = leave_pictures(run, "decoder")
    path.write_bytes(b"half a file")
    (path.parent / "history.json").write_text('[{"stage": "decoder"}]')
    (path.parent / "finished.json").write_text("[]")
    text = write_report(run).read_text(encoding="utf-8")
    assert "**Reconstructions are missing:**" in text
    assert "**Learning curves are missing:**" in text
    assert "**How long they learned is missing:**" in text
    assert "0.150 .. 0.184" in text


@pytest.mark.usefixtures("undrawn")
def test_the_report_says_how_hard_attackers_tried(run: RunFolder) -> None:
    leave_pictures(run, "decoder")
    folder = leave_pictures(run, "position").parent
    curve = [
        {"stage": stage, "epoch": epoch, "loss": 1.0, "held_out": 1.0}
        for stage, epochs in (("set", 5), ("decoder", 8))
        for epoch in range(epochs + 1)
    ]
    (folder / "history.json").write_text(json.dumps(curve))
    text = write_report(run).read_text(encoding="utf-8")
    assert "The attackers had 120 auxiliary images of 11 people." in text
    assert "Epochs that they learned for: `decoder` 3; `position` set 5, decoder 8." in text


def test_effort_over_runs_is_a_span(make_run: MakeRun) -> None:
    runs = [make_run("one"), make_run("two"), make_run("three")]
    for run in runs[:2]:
        leave_pictures(run, "decoder")
    points = [{"stage": "decoder", "epoch": 7, "loss": 1.0, "held_out": 1.0}]
    (runs[1].path / "attacks" / "decoder" / "history.json").write_text(json.dumps(points))
    (runs[1].path / "attacks" / "decoder" / "finished.json").write_text('{"rows": 4}')
    assert effort_table(runs)[["images", "epochs"]].to_numpy().tolist() == [[120, 3], [0, 7]]
    assert "`decoder` 3 .. 7." in effort(effort_table(runs))
    assert effort(effort_table(runs[2:])) == ""


def test_learning_curves(make_run: MakeRun) -> None:
    runs = [make_run("row", full=False), make_run("none", full=False, permute="none")]
    assert learning_figure(runs) is None
    for run in runs:
        leave_pictures(run, "decoder")
    table = learning_table(runs)
    assert table["epoch"].tolist() == [0, 1, 2, 3] * 2
    assert table["held_out"].tolist()[:2] == [1.2, 0.6]
    one, several = learning_figure(runs[:1]), learning_figure(runs)
    assert one is not None
    assert several is not None
    assert [line.get_label() for line in one.axes[0].lines] == [
        "in training", "on auxiliary people held out",
    ]  # fmt: skip
    assert [line.get_label() for line in several.axes[0].lines] == [
        "LP+GN 0.05, 0.5", "LP+GN 0.05, 0.5 + row",
    ]  # fmt: skip


def test_a_run_without_pictures(run: RunFolder, tmp_path: Path) -> None:
    assert run_pictures(run) is None
    assert reconstructions(run, "decoder") is None
