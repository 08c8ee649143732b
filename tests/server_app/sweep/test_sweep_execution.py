# SPDX-License-Identifier: Apache-2.0
"""What a sweep does with trials that are new, done, begun, failed or broken."""

from pathlib import Path

import pandas as pd
import pytest

from reports import RunFolder
from server_app.cli.launch.interrupts import Interrupted
from server_app.sweep import (
    Launch,
    Step,
    SweepError,
    Trial,
    TrialTable,
    command,
    differences,
    missing_attackers,
    next_step,
    only_sweep_in,
    run_trials,
)
from server_app.sweep import execute as execute_module
from tests.server_app.sweep.fake_trials import (
    FakeJob,
    FakeRunner,
    MakeTrials,
    Notes,
    attack,
    begin,
    train,
)

NONE, ROW = "permute-none_seed-0", "permute-row_seed-0"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute_module, "PAUSE", 0.0)
    monkeypatch.setattr(execute_module, "write_report", lambda run: run.report_path)


def sweep(trials: list[Trial], runner: FakeRunner, **options: object) -> pd.DataFrame:
    """Run the trials, and what the table on disk says then."""
    folder = Path(trials[0].config.runs_dir)
    folder.mkdir(exist_ok=True)
    run_trials(trials, TrialTable(folder, trials), runner, Notes(), **options)  # type: ignore[arg-type]
    return pd.read_parquet(folder / "trials.parquet").set_index("trial")


def test_new_trials_are_run_and_then_left_alone(make_trials: MakeTrials) -> None:
    trials, runner = make_trials(), FakeRunner()
    table = sweep(trials, runner)
    assert runner.asked == [(NONE, Step.START), (ROW, Step.START)]
    assert list(table.columns) == ["status", "error", "seconds", "permute", "seed"]
    assert table["status"].tolist() == ["finished", "finished"]
    assert table.loc[ROW, "permute"] == "row"
    assert RunFolder.open(trials[0].folder).facts()["status"] == "finished"
    again = FakeRunner()
    pd.testing.assert_frame_equal(sweep(trials, again), table)
    assert again.asked == []


def test_a_failure_is_a_row_and_the_sweep_goes_on(make_trials: MakeTrials) -> None:
    trials = make_trials()
    table = sweep(trials, FakeRunner(broken=[NONE]))
    assert table.loc[NONE, ["status", "error"]].tolist() == [
        "failed", "RuntimeError: out of memory"
    ]  # fmt: skip
    assert table.loc[ROW, "status"] == "finished"
    left_alone = FakeRunner()
    assert sweep(trials, left_alone).loc[NONE, "status"] == "failed"
    assert left_alone.asked == []
    retried = FakeRunner()
    assert sweep(trials, retried, retry_failed=True).loc[NONE, "error"] == ""
    assert retried.asked == [(NONE, Step.START)]


def test_each_begun_trial_goes_on_from_where_it_is(make_trials: MakeTrials) -> None:
    trials = make_trials(grid={"cut": [0, 1], "permute": ["none", "row"]}, seeds=[0, 1])
    early, midway, trained, attacked, other, broken = trials[:6]
    for trial in (early, midway, trained, attacked, other):
        begin(trial)
    train(midway, 2)
    for trial in (trained, attacked, other):
        train(trial, trial.config.rounds)
    RunFolder.open(trained.folder).set_status("failed", "in the attack")
    attack(attacked, ["decoder"])
    attack(other, ["decoder", "position"], epochs=99)
    broken.folder.mkdir()
    (broken.folder / "log.txt").write_text("what is left")
    assert missing_attackers(attacked) == ["position"]
    assert missing_attackers(other) == ["decoder", "position"]

    runner = FakeRunner()
    table = sweep(trials, runner)
    assert runner.steps() == [
        "afresh", "resume", "attack", "attack", "attack", "afresh", "start", "start"
    ]  # fmt: skip
    assert (table["status"] == "finished").all()
    assert RunFolder.open(trained.folder).facts()["status"] == "finished"
    aside = broken.folder.parent / "set-aside" / f"{broken.name}-1" / "log.txt"
    assert aside.read_text() == "what is left"


def test_what_was_trained_outlives_a_broken_table_of_attacks(make_trials: MakeTrials) -> None:
    trial = make_trials()[0]
    begin(trial)
    train(trial, trial.config.rounds)
    attack(trial, ["decoder", "position"])
    assert next_step(trial) is Step.NOTHING
    (trial.folder / "attacks.parquet" / "part-000000.parquet").write_bytes(b"half")
    assert next_step(trial) is Step.ATTACK


def test_attacks_on_an_earlier_round_are_made_again(make_trials: MakeTrials) -> None:
    trial = make_trials()[0]
    begin(trial)
    train(trial, trial.config.rounds)
    attack(trial, ["decoder"], round=trial.config.rounds - 1)
    attack(trial, ["position"])
    assert missing_attackers(trial) == ["decoder"]


def test_another_attacker_is_all_that_is_added(make_trials: MakeTrials) -> None:
    sweep(make_trials(set={"attack": "decoder"}), FakeRunner())
    trials, runner = make_trials(), FakeRunner()
    assert not any(list(differences(trial)) for trial in trials)
    assert missing_attackers(trials[0]) == ["position"]
    sweep(trials, runner)
    assert runner.steps() == ["attack", "attack"]


def test_a_run_of_other_keys_is_in_the_way(make_trials: MakeTrials) -> None:
    trial, other = make_trials()
    begin(trial, **{"batch-size": 3, "step-timeout": 9.0})
    assert next_step(trial) is Step.AFRESH
    assert list(differences(trial)) == []  # nothing to lose
    train(trial, 1)
    (problem,) = differences(trial)
    assert problem.key == f"{NONE}: batch-size"
    assert "has 3; give the sweep another name" in problem.message
    assert list(differences(other)) == []


def test_so_many_at_a_time(make_trials: MakeTrials) -> None:
    trials = make_trials(seeds=[0, 1, 2])
    folder = Path(trials[0].config.runs_dir)
    folder.mkdir()
    done = FakeRunner()

    def slow(trial: Trial, step: Step) -> FakeJob:
        done(trial, step)
        return FakeJob(polls=3)

    notes = Notes()
    run_trials(trials, TrialTable(folder, trials), slow, notes, jobs=2)
    assert notes.most == 2
    assert len(done.asked) == 6


def test_an_interrupt_stops_the_trials_which_stay_pending(make_trials: MakeTrials) -> None:
    trials = make_trials()
    folder = Path(trials[0].config.runs_dir)
    folder.mkdir()
    job = FakeJob(polls=10**6)

    class Impatient(Notes):
        def going(self, running: object) -> None:
            raise Interrupted(2)

    notes = Impatient()
    with pytest.raises(Interrupted):
        run_trials(trials, TrialTable(folder, trials), lambda trial, step: job, notes)
    assert job.interrupted
    assert not job.killed
    assert notes.told == [f"begun {NONE}", "stopping"]
    table = pd.read_parquet(folder / "trials.parquet")
    assert table["status"].tolist() == ["pending", "pending"]
    assert table["seconds"].iloc[0] > 0


def test_trials_are_stopped_even_if_nobody_listens(make_trials: MakeTrials) -> None:
    trials = make_trials()
    folder = Path(trials[0].config.runs_dir)
    folder.mkdir()
    job = FakeJob(polls=10**6)

    class Gone(Notes):
        def going(self, running: object) -> None:
            raise BrokenPipeError

        def stopping(self) -> None:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        run_trials(trials, TrialTable(folder, trials), lambda trial, step: job, Gone())
    assert job.interrupted


def test_a_process_that_ends_well_but_leaves_too_little(make_trials: MakeTrials) -> None:
    trials = make_trials()
    begin(trials[0])
    train(trials[0], trials[0].config.rounds)
    folder = Path(trials[0].config.runs_dir)
    table = TrialTable(folder, trials)
    run_trials(trials, table, lambda trial, step: FakeJob(), Notes())
    errors = dict(table.failed())
    assert errors[NONE] == "ended well, but without results of decoder, position"
    assert "its run is not complete" in errors[ROW]


def test_a_lost_table_is_made_again(make_trials: MakeTrials) -> None:
    trials = make_trials()
    sweep(trials, FakeRunner())
    (Path(trials[0].config.runs_dir) / "trials.parquet").write_bytes(b"half")
    runner = FakeRunner()
    assert (sweep(trials, runner)["status"] == "finished").all()
    assert runner.asked == []


def test_command_lines(make_trials: MakeTrials) -> None:
    trial = make_trials(clients=3)[1]
    launch = Launch(ray_address="10.0.0.1:6379", client_gpus=0.25)
    started = command(trial, Step.START, launch)
    assert started[:5] == ["run", "--preset", "smoke", "--clients", "3"]
    assert {'permute="row"', 'attack="decoder,position"', "seed=0"} <= set(started)
    assert started[-2:] == ["--ray-address", "10.0.0.1:6379"]
    resumed = command(trial, Step.RESUME, launch)
    assert resumed[:3] == ["run", "--resume", str(trial.folder)]
    assert 'attack="decoder,position"' in resumed
    assert 'permute="row"' not in resumed
    begin(trial)
    attack(trial, ["decoder"])
    attacked = command(trial, Step.ATTACK, launch)
    assert attacked[:4] == ["attack", str(trial.folder), "--attacker", "position"]
    assert "--face" not in attacked


def test_one_sweep_at_a_time(tmp_path: Path) -> None:
    with (
        only_sweep_in(tmp_path),
        pytest.raises(SweepError, match="another sweep"),
        only_sweep_in(tmp_path),
    ):
        pass
    with only_sweep_in(tmp_path):
        pass
