# SPDX-License-Identifier: Apache-2.0
"""The run folder: what is written is read again, whole or not at all."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from reports import RunFolder, RunFolderError
from reports.schemas import ATTACKS, LEDGER, METRICS
from tests.reports.fake_run import ATTACK, CONFIG, MakeRun, evaluation, ledger, leg, metric


def test_create_writes_config_and_facts(make_run: MakeRun) -> None:
    run = RunFolder.open(make_run(full=False).path)
    assert run.config() == CONFIG
    facts = run.facts()
    assert (facts["status"], facts["error"], facts["finished"]) == ("running", None, None)
    assert datetime.fromisoformat(facts["started"]).tzinfo is not None
    assert set(facts["versions"]) == {"python", "flwr", "ray", "torch", "timm", "permsplit"}
    assert facts["machine"]["cpus"] >= 1


def test_create_refuses_an_existing_run(make_run: MakeRun) -> None:
    run = make_run()
    with pytest.raises(RunFolderError, match=r"exists already.*run-name.*resume"):
        make_run()
    assert len(run.metrics()) > 0


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "..", "a b"])
def test_create_refuses_names_that_are_no_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(RunFolderError, match="run-name"):
        RunFolder.create(tmp_path, name, CONFIG)


def test_a_failed_create_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        RunFolder.create(tmp_path, "first", {"seed": object()})
    assert list(tmp_path.iterdir()) == []


def test_open_names_all_that_is_missing_or_broken(make_run: MakeRun, tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="no such folder"):
        RunFolder.open(tmp_path / "nowhere")
    run = make_run()
    run.config_path.unlink()
    run.facts_path.write_text('{"status": ')
    with pytest.raises(RunFolderError, match=r"config.toml is missing; run.json cannot be read"):
        RunFolder.open(run.path)


def test_rows_come_back_in_order_with_their_round(make_run: MakeRun) -> None:
    run = make_run(full=False)
    run.append_metrics([metric("loss", 0.5)], round=1)
    run.append_metrics(pd.DataFrame([metric("loss", 0.4), metric("loss", 0.3)]), round=2)
    run.append_ledger(iter(ledger()), round=2)
    run.append_attacks([ATTACK])
    assert run.metrics()["round"].tolist() == [1, 2, 2]
    assert run.metrics()["value"].tolist() == [0.5, 0.4, 0.3]
    assert list(run.ledger().columns) == list(LEDGER)
    pd.testing.assert_frame_equal(run.attacks(), pd.DataFrame([ATTACK]))
    pd.testing.assert_frame_equal(pd.read_parquet(run.metrics_path), run.metrics())


def test_numpy_numbers_are_numbers(make_run: MakeRun) -> None:
    run = make_run(full=False)
    row = metric("loss", 0.0) | {"value": np.float32(0.5), "count": np.int32(3)}
    run.append_metrics([row], round=1)
    run.add_facts({"images": np.int64(7), "sizes": np.arange(2)})
    assert run.metrics()["value"].tolist() == [0.5]
    assert (run.facts()["images"], run.facts()["sizes"]) == (7, [0, 1])


def test_empty_tables_have_their_columns(make_run: MakeRun) -> None:
    run = make_run(full=False)
    run.append_metrics([], round=1)
    for table, columns in (
        (run.metrics(), METRICS), (run.ledger(), LEDGER), (run.attacks(), ATTACKS),
    ):  # fmt: skip
        assert table.empty
        assert list(table.columns) == list(columns)
    run.metrics_path.rmdir()  # lost by a copy that keeps no empty folders
    assert RunFolder.open(run.path).metrics().empty


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colour": "red"}, "unknown column 'colour'"),
        ({"value": "much"}, "column 'value' must be double"),
        ({"count": 1.5}, "column 'count' must be int64"),
        ({"split": None}, "column 'split' has no value in row 1"),
        ({"round": 9}, "column 'round' is 9, but 1 is being written"),
    ],
)
def test_rows_that_do_not_fit_are_named(
    make_run: MakeRun, change: dict[str, object], message: str
) -> None:
    run = make_run(full=False)
    with pytest.raises(RunFolderError, match=message):
        run.append_metrics([metric("loss", 0.5), metric("loss", 0.4) | change], round=1)
    assert run.metrics().empty


def test_missing_columns_are_named(make_run: MakeRun) -> None:
    row = leg("smashed", "up", 1, 1.0)
    del row["bytes"], row["images"]
    with pytest.raises(
        RunFolderError, match="row 0: missing column 'bytes', missing column 'images'"
    ):
        make_run(full=False).append_ledger([row], round=1)


def test_unfinished_files_are_never_read(run: RunFolder) -> None:
    before = run.metrics()
    for name in (".part-000004.parquet.tmp", "part-000004.parquet.tmp", "notes.txt"):
        (run.metrics_path / name).write_bytes(b"PAR1 half a file")
    (run.checkpoints_path / ".round-0009.abc.tmp").mkdir()
    pd.testing.assert_frame_equal(run.metrics(), before)
    assert run.latest_checkpoint() == run.checkpoint(2)
    run.append_metrics([metric("loss", 0.1)], round=3)
    assert len(run.metrics()) == len(before) + 1


def test_a_part_is_invisible_until_it_is_whole(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = run.metrics()
    seen = []

    def half(table: object, path: Path) -> None:
        path.write_bytes(b"PAR1 half")
        seen.append(len(run.metrics()))
        raise OSError("disk full")

    monkeypatch.setattr("reports.part_table.pq.write_table", half)
    with pytest.raises(OSError, match="disk full"):
        run.append_metrics([metric("loss", 0.1)], round=3)
    assert seen == [len(before)]
    pd.testing.assert_frame_equal(run.metrics(), before)
    assert not list(run.metrics_path.glob(".*"))


def test_writers_at_the_same_time_lose_nothing(make_run: MakeRun) -> None:
    run = make_run(full=False)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: run.append_attacks([ATTACK | {"count": i}]), range(40)))
    assert sorted(run.attacks()["count"]) == list(range(40))


def test_a_broken_part_is_named(run: RunFolder) -> None:
    (run.ledger_path / "part-000000.parquet").write_bytes(b"no parquet")
    with pytest.raises(RunFolderError, match=r"part-000000.parquet cannot be read"):
        run.ledger()


def test_a_part_with_a_broken_page_is_named(run: RunFolder) -> None:
    part = run.ledger_path / "part-000000.parquet"
    content = bytearray(part.read_bytes())
    content[4:200] = b"\xff" * 196
    part.write_bytes(content)
    with pytest.raises(RunFolderError, match=r"part-000000.parquet cannot be read"):
        run.ledger()


def test_a_column_of_another_type_is_named(run: RunFolder) -> None:
    part = run.metrics_path / "part-000000.parquet"
    frame = pd.read_parquet(part)
    frame.assign(value="much").to_parquet(part)
    with pytest.raises(RunFolderError, match=r"part-000000.parquet cannot be read: .*much"):
        run.metrics()


def test_truncation_forgets_later_rounds_only(run: RunFolder) -> None:
    run.truncate_after(1)
    assert set(run.metrics()["round"]) == {1}
    assert set(run.ledger()["round"]) == {1}
    assert run.attacks().empty  # they were on the checkpoint of round 2
    assert run.latest_checkpoint() == run.checkpoint(1)
    assert run.facts()["resumed"][0]["after_round"] == 1
    run.append_metrics(evaluation(2), round=2)
    assert run.metrics()["round"].tolist()[-1] == 2


def test_checkpoints_are_whole_or_absent(make_run: MakeRun) -> None:
    run = make_run(full=False)
    assert run.latest_checkpoint() is None
    with pytest.raises(FileNotFoundError), run.new_checkpoint(3) as folder:
        (folder / "edge" / "no such folder").touch()
    assert run.latest_checkpoint() is None
    for content in (b"old", b"new"):
        with run.new_checkpoint(3) as folder:
            (folder / "trunk.safetensors").write_bytes(content)
    assert run.checkpoint(3).name == "round-0003"
    assert (run.checkpoint(3) / "trunk.safetensors").read_bytes() == b"new"
    assert [path.name for path in run.checkpoints_path.iterdir()] == ["round-0003"]


@pytest.mark.parametrize("content", ["", "{half", "[]"])
def test_progress_that_cannot_be_read_is_none(make_run: MakeRun, content: str) -> None:
    run = make_run(full=False)
    run.progress_path.write_text(content)
    assert run.progress() == {}


def test_status_facts_and_progress(make_run: MakeRun) -> None:
    run = make_run(full=False)
    run.set_status("failed", error="ValueError: boom")
    assert run.facts()["error"] == "ValueError: boom"
    assert run.facts()["finished"] is not None
    run.set_status("running")
    assert (run.facts()["error"], run.facts()["finished"]) == (None, None)
    with pytest.raises(RunFolderError, match="use one of running, finished, failed, stopped"):
        run.set_status("done")  # type: ignore[arg-type]
    run.add_facts({"clients": 4, "machine": {"gpus": ["H200"]}})
    assert run.facts()["machine"]["gpus"] == ["H200"]
    assert run.facts()["machine"]["cpus"] >= 1
    assert run.progress() == {}
    run.write_progress({"round": 1, "rounds": 6, "phase": "train"})
    assert run.progress()["rounds"] == 6
    assert "updated" in run.progress()
