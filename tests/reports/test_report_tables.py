# SPDX-License-Identifier: Apache-2.0
"""Tables against numbers computed by hand from the rows in conftest."""

import math

import pytest

from reports import RunFolder
from reports.tables import (
    attack_table,
    bytes_per_image,
    compare,
    cost_table,
    differing,
    headline,
    images_per_second,
    utility_per_attribute,
    utility_table,
)
from tests.reports.fake_run import MakeRun, metric


def test_utility_table_weights_clients_where_the_run_did_not(run: RunFolder) -> None:
    table = utility_table([run])
    assert list(table.columns) == [
        "run", "round", "split", "attribute", "metric", "value", "count",
    ]  # fmt: skip
    loss = table[(table["split"] == "train") & (table["metric"] == "loss")].set_index("round")
    assert loss["value"].to_dict() == pytest.approx({1: 0.70, 2: 0.35})  # (.6*300 + 1.*100) / 400
    assert loss["count"].tolist() == [400, 400]
    assert "images_per_second" not in set(table["metric"])


def test_rows_over_all_clients_win(make_run: MakeRun) -> None:
    run = make_run(full=False)
    rows = [metric("accuracy", 0.9), metric("accuracy", 0.1, client=0)]
    run.append_metrics(rows, round=1)
    run.append_metrics([metric("accuracy", 0.8)], round=1)  # measured again
    assert utility_table([run])["value"].tolist() == [0.8]


def test_utility_per_attribute(run: RunFolder) -> None:
    table = utility_per_attribute(run).set_index("attribute")
    assert list(table.index) == ["Smiling", "Male", "Bald"]
    assert list(table.columns) == ["accuracy", "balanced_accuracy", "floor", "gain"]
    assert table["gain"].tolist() == pytest.approx([0.30, 0.30, -0.03])
    assert table.loc["Bald", "balanced_accuracy"] == 0.50
    assert utility_per_attribute(run, "validation").empty


def test_headline_is_the_last_test_evaluation(run: RunFolder) -> None:
    last = headline(run)
    assert last is not None
    assert (last.split, last.round, last.count) == ("test", 2, 200)
    found = (last.accuracy, last.balanced_accuracy, last.floor, last.loss)
    assert found == pytest.approx((0.88, 0.71, 0.69, 0.30))


def test_headline_falls_back_to_validation(make_run: MakeRun) -> None:
    run = make_run(full=False)
    assert headline(run) is None
    run.append_metrics([metric("accuracy", 0.8, split="validation")], round=1)
    last = headline(run)
    assert last is not None
    assert last.split == "validation"
    assert math.isnan(last.floor)


def test_cost_table(run: RunFolder) -> None:
    table = cost_table([run]).set_index("leg")
    assert table["bytes"].to_dict() == {
        "smashed": 4_000_000, "hidden": 200_000, "trunk-compute": 0, "evaluate-smashed": 600_000,
    }  # fmt: skip
    # 2 rounds x 2 clients x 10 steps of training; 2 rounds x 3 steps of evaluation
    assert table["bytes_per_step"].tolist() == [100_000, 5_000, 0, 100_000]
    assert table["seconds"].tolist() == [8.0, 4.0, 8.0, 1.0]
    assert table["time_share"].tolist() == pytest.approx([8 / 21, 4 / 21, 8 / 21, 1 / 21])
    assert table.loc["smashed", "images"] == 1280
    # 400 images at 100/s and 400 at 200/s take 6 s
    assert table.loc["hidden", "images_per_second"] == pytest.approx(800 / 6)
    assert table["images_per_second"].isna().tolist() == [False, False, False, True]
    assert images_per_second(run) == pytest.approx(800 / 6)
    assert bytes_per_image(run) == pytest.approx(4_200_000 / 1280)


def test_compare_shows_what_differs(make_run: MakeRun) -> None:
    runs = [make_run("first"), make_run("second", permute="none", seed=8)]
    table = compare(runs).set_index("run")
    assert differing(runs) == ["permute", "seed"]
    assert table["permute"].to_dict() == {"first": "row", "second": "none"}
    assert table["seed"].to_dict() == {"first": 7, "second": 8}
    assert "batch-size" not in table
    assert "run-name" not in table
    assert table.loc["first", "gain"] == pytest.approx(0.19)
    assert table.loc["first", "bytes_per_image"] == pytest.approx(4_200_000 / 1280)
    assert table["clients"].tolist() == [2, 2]
    assert len(attack_table(runs)) == 2


def test_incomplete_runs_have_rows_too(make_run: MakeRun) -> None:
    runs = [make_run("first"), make_run("empty", full=False)]
    row = compare(runs).set_index("run").loc["empty"]
    assert row["status"] == "running"
    assert row[["accuracy", "bytes_per_image", "images_per_second"]].isna().all()
    for table in (utility_table(runs[1:]), cost_table(runs[1:]), attack_table(runs[1:])):
        assert table.empty
        assert "run" in table.columns
