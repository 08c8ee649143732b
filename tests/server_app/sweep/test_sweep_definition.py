# SPDX-License-Identifier: Apache-2.0
"""Sweep files: what they ask for, and every problem at once before any work."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.run_folder import NAME
from server_app.cli.values import parse_assignments
from server_app.sweep import SweepError, load_sweep, parse_sweep, plan_trials
from server_app.sweep.definition import SWEEPS_FOLDER
from server_app.sweep.names import LONGEST, trial_names
from tests.server_app.sweep.fake_trials import MakeTrials

SHIPPED = sorted(SWEEPS_FOLDER.glob("*.toml"))


def problems(document: dict[str, object], tmp_path: Path) -> str:
    with pytest.raises(SweepError) as caught:
        plan_trials(parse_sweep(document, "file.toml"), tmp_path, "file.toml")
    return str(caught.value)


def test_cases_times_grid_times_seeds(make_trials: MakeTrials) -> None:
    trials = make_trials(
        seeds=[0, 7],
        grid={"permute": ["none", "row"], "cut": [0, 1]},
        cases=[{"defences": ""}, {"defences": "gn:0.5", "defence-point": "embedding"}],
    )
    assert len(trials) == 16
    assert trials[0].name == "defences-none_permute-none_cut-0_seed-0"
    assert trials[-1].name == ("defences-gn-0.5_defence-point-embedding_permute-row_cut-1_seed-7")
    assert list(trials[0].varied) == ["defences", "defence-point", "permute", "cut", "seed"]
    assert trials[0].varied["defence-point"] == "pixels"
    last = trials[-1].config
    assert (last.defences, last.permute, last.cut, last.seed) == ("gn:0.5", "row", 1, 7)
    assert last.attack == "decoder,position"
    assert last.state_dir == f"{last.runs_dir}/client-state"


def test_a_sweep_that_grows_keeps_its_names(make_trials: MakeTrials) -> None:
    before = {trial.name for trial in make_trials()}
    grown = {trial.name for trial in make_trials(seeds=[0, 1])}
    assert before < grown


def test_keys_of_the_command_line_win_and_are_written_down(make_trials: MakeTrials) -> None:
    sweep = parse_sweep({"name": "a", "set": {"rounds": 3}, "seeds": [4]}, "test")
    sweep = sweep.with_common(parse_assignments(["rounds=5", "attack=decoder"])[0], "test")
    assert sweep.common == {"rounds": 5, "attack": "decoder"}
    assert parse_sweep(tomllib.loads(sweep.as_toml()), "again") == sweep


def test_all_problems_of_the_fields_at_once(tmp_path: Path) -> None:
    text = problems(
        {"nmae": "x", "seed": 1, "rounds": 3, "clients": 0, "seeds": [], "grid": 1}, tmp_path
    )
    for told in (
        'nmae = "x": unknown field; did you mean \'name\'?', "give it as seeds = [...]",
        "rounds = 3: unknown field; a key of a run belongs into [set] or [grid]",
        'name = "": needed', "clients = 0: must be a whole number >= 1",
        "seeds = []: must be a list of whole numbers", "grid = 1: must be a table",
        "7 problems in the sweep file.toml",
    ):  # fmt: skip
        assert told in text, told


def test_keys_in_the_wrong_place(tmp_path: Path) -> None:
    text = problems(
        {
            "name": "x",
            "set": {"permute": "row", "seed": 1, "run-name": "a"},
            "grid": {"permute": ["none"], "cut": 1},
            "cases": [{"cut": 0}, {"resume": True}],
        },
        tmp_path,
    )
    for told in (
        "permute = \"...\": is in set and in grid", "grid.cut = 1: must be a list of values",
        "cut = \"...\": is in grid and in cases", "seed = 1: give it as seeds",
        "run-name = \"a\": a trial is named after its values", "resume",
    ):  # fmt: skip
        assert told in text, told


def test_problems_of_trials_are_told_once_with_their_trials(tmp_path: Path) -> None:
    text = problems(
        {
            "name": "x",
            "clients": 1,
            "set": {"bach-size": 4, "attack": "decodr"},
            "grid": {"defences": ["", "gn:-1"], "cut": [0, 9]},
        },
        tmp_path,
    )
    assert text.count("did you mean 'batch-size'? (all trials)") == 1
    assert text.count("unknown: decodr") == 1
    assert "gn" in text
    assert "(trials defences-gn-1_cut-0_seed-0, defences-gn-1_cut-9_seed-0)" in text
    assert "(trials defences-none_cut-9_seed-0, defences-gn-1_cut-9_seed-0)" in text


def test_problems_of_data_and_clients(tmp_path: Path) -> None:
    document = {"name": "x", "clients": 1, "set": {"data": "celeba:/no/such/place"}}
    text = problems({**document, "grid": {"permute": ["none", "row"]}}, tmp_path)
    assert text.count("no such folder") == 1
    assert "min-clients = 2: more than the sweep's 1 clients (all trials)" in text


def test_trials_that_are_the_same(tmp_path: Path) -> None:
    assert "comes up twice" in problems({"name": "x", "seeds": [1, 1]}, tmp_path)
    assert "no-such-preset" in problems({"name": "x", "preset": "no-such-preset"}, tmp_path)


def test_what_the_command_line_may_not_set() -> None:
    sweep = parse_sweep({"name": "x", "grid": {"permute": ["none"]}}, "test")
    with pytest.raises(SweepError) as caught:
        sweep.with_common({"permute": "row", "seed": 3, "runs-dir": "here"}, "test")
    assert '--set permute = "row": the sweep varies this key' in str(caught.value)
    assert len(caught.value.problems) == 3


def test_files_that_are_no_sweeps(tmp_path: Path) -> None:
    with pytest.raises(SweepError, match=r"no such file; .*, or one of .*smoke"):
        load_sweep(tmp_path / "nothing.toml")
    (tmp_path / "broken.toml").write_text("name = ")
    with pytest.raises(SweepError, match="not valid TOML"):
        load_sweep(tmp_path / "broken.toml")


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_sweeps_are_sound(path: Path, tmp_path: Path) -> None:
    sweep = load_sweep(path.stem)
    assert sweep.name == path.stem
    sweep = sweep.with_common({"data": "synthetic:600"}, str(path))
    trials = plan_trials(sweep, tmp_path, str(path))
    assert len(trials) == {
        "table6": 8, "lp-radius": 10, "positions": 4, "rotation": 5, "smoke": 3
    }[path.stem]  # fmt: skip


def test_no_shipped_sweep_is_missing() -> None:
    assert {path.stem for path in SHIPPED} == {
        "table6", "lp-radius", "positions", "rotation", "smoke"
    }  # fmt: skip


VALUE = st.one_of(
    st.integers(-5, 5), st.booleans(), st.floats(0, 1), st.text(max_size=120),
    st.sampled_from(["row+column", "row-column", "lp:0.05,gn:0.5", "/data/celeba"]),
)  # fmt: skip


@given(st.lists(VALUE, min_size=1, max_size=6, unique_by=lambda value: str(value).lower()))
def test_names_are_folders_and_differ(values: list[object]) -> None:
    trials = [{"defences": value, "seed": 0} for value in values]
    names = trial_names(trials)
    assert len(set(names)) == len(values)
    assert all(NAME.fullmatch(name) and len(name) <= LONGEST for name in names)
    assert names == trial_names(trials)
