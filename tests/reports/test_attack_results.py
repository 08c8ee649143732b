# SPDX-License-Identifier: Apache-2.0
"""Attack results over runs: which rows count, what repeats make, what a setting is."""

import math

import pytest

from reports import RunFolder, Study, attack_table
from reports.attack_results import over_repeats, strongest
from reports.attack_text import rows_as_text
from reports.paper import TABLE_6, paper_row
from reports.settings import Setting, setting_of, settings
from reports.table6 import table6
from reports.utility import headline
from tests.reports.fake_run import (
    BEST,
    BLACK_BOX,
    CONFIG,
    NAN,
    PER_TOKEN,
    TOLD,
    MakeRun,
    attack_row,
    attacked,
)


def counted(run: RunFolder) -> dict[tuple[int, str], float]:
    table = attack_table([run])
    keys = zip(table["seed"], table["metric"], strict=True)
    return dict(zip(keys, table["value"].tolist(), strict=True))


def test_a_weaker_repeat_hides_nothing(make_run: MakeRun) -> None:
    run = make_run()
    patient = [attack_row(run, value=0.5), attack_row(run, metric="lpips", value=0.2)]
    run.append_attacks([*patient, attack_row(run, seed=8, value=0.9)])
    hurried = [attack_row(run, value=0.3), attack_row(run, metric="lpips", value=0.6)]
    run.append_attacks([*hurried, attack_row(run, metric="psnr", value=NAN)])
    found = counted(run)
    assert math.isnan(found.pop((7, "psnr")))
    assert found == {(7, "ssim"): 0.5, (8, "ssim"): 0.9, (7, "lpips"): 0.2}
    run.append_attacks([attack_row(run, value=0.6), attack_row(run, metric="psnr", value=12.0)])
    assert counted(run) == {
        (7, "ssim"): 0.6, (8, "ssim"): 0.9, (7, "lpips"): 0.2, (7, "psnr"): 12.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    "other", [{"round": 1}, {"embedder": "another network"}, {"count": 3}], ids=str
)
def test_repeats_that_are_not_alike_are_not_compared(
    make_run: MakeRun, other: dict[str, object]
) -> None:
    run = make_run(full=False)
    run.append_attacks([attack_row(run, **{"count": 8, "value": 0.9} | other)])
    run.append_attacks([attack_row(run, count=8, value=0.3)])
    assert counted(run) == {(7, "ssim"): 0.3}


def test_defence_and_utility_stand_beside_each_result(make_run: MakeRun) -> None:
    runs = [make_run("one", defences="gn:0.5", batch_size=8), make_run("two", defences="")]
    table = attack_table(runs).set_index("run")
    assert table["setting"].to_dict() == {
        "one": "GN 0.5 + row (batch-size 8)", "two": "SL + row (batch-size 32)",
    }  # fmt: skip
    assert table["batch_size"].to_dict() == {"one": 8, "two": 32}
    last = headline(runs[0])
    assert last is not None
    assert table.loc["one", "accuracy"] == last.accuracy == 0.88
    assert table["accuracy_floor"].tolist() == [0.69, 0.69]
    assert table["run_seed"].tolist() == [7, 7]


def test_an_attack_on_a_run_without_evaluation_has_no_utility(make_run: MakeRun) -> None:
    run = make_run(full=False)
    run.append_attacks([attack_row(run)])
    assert attack_table([run])["accuracy"].isna().all()


@pytest.mark.parametrize(
    ("changes", "label"),
    [
        ({"defences": "", "permute": "none"}, "SL"),
        ({"defences": "lp:0.05,gn:0.5"}, "LP+GN 0.05, 0.5 + row"),
        ({"defences": "bs:0.4", "permute": "row+column"}, "BS 0.4 + row+column"),
    ],
)
def test_names_of_settings(changes: dict[str, object], label: str) -> None:
    assert setting_of(CONFIG | changes).label == label


def test_what_has_no_effect_is_not_named(make_run: MakeRun) -> None:
    changes: list[dict[str, object]] = [
        {"permute": "none", "rotation": "fixed"}, {"rotation": "fixed"}, {"rotation": "sample"},
        {"seed": 9, "attack": "decoder"},
    ]  # fmt: skip
    runs = [make_run(f"r{i}", full=False, defences="", **c) for i, c in enumerate(changes)]
    assert [setting.label for setting in settings(runs)] == [
        "SL", "SL + row (rotation fixed)", "SL + row (rotation sample)",
        "SL + row (rotation sample)",
    ]  # fmt: skip


def test_repeats_have_mean_spread_and_the_span_of_intervals(make_run: MakeRun) -> None:
    runs = [make_run(f"seed-{seed}", full=False, seed=seed) for seed in (1, 2)]
    for run, value, accuracy in zip(runs, (0.30, 0.40), (0.80, 0.90), strict=True):
        attacked(run, {BLACK_BOX: value}, accuracy)
    row = over_repeats(attack_table(runs)).set_index("metric").loc["ssim"]
    assert (row["value"], row["repeats"]) == (pytest.approx(0.35), 2)
    assert row["spread"] == pytest.approx(math.sqrt(0.005))
    assert (row["low"], row["high"]) == (pytest.approx(0.28), pytest.approx(0.42))
    utility = Study(runs).utility.iloc[0]
    assert (utility["accuracy"], utility["runs"]) == (pytest.approx(0.85), 2)
    assert utility["accuracy_spread"] == pytest.approx(math.sqrt(0.005))


def test_attacks_on_other_victims_are_no_repeats(make_run: MakeRun) -> None:
    run, other = make_run("one", full=False, seed=1), make_run("two", full=False, seed=2)
    for client, ssim, lpips in ((-1, 0.50, 0.10), (0, 0.30, 0.30), (1, 0.70, 0.20)):
        run.append_attacks(
            [
                attack_row(run, client=client, value=ssim, floor_mean_image=ssim / 10),
                attack_row(run, client=client, seed=8, value=ssim + 0.02),
                attack_row(run, client=client, metric="lpips", value=lpips),
                attack_row(run, client=client, metric="psnr", value=NAN),
            ]
        )
    other.append_attacks([attack_row(other, value=0.20)])
    whole = over_repeats(attack_table([run])).set_index("metric")
    assert whole.loc["ssim", ["value", "repeats"]].tolist() == [pytest.approx(0.71), 2]
    assert whole.loc["lpips", ["value", "repeats"]].tolist() == [0.10, 1]
    assert whole.loc["psnr", "repeats"] == 1
    both = over_repeats(attack_table([run, other])).set_index("metric").loc["ssim"]
    assert (both["value"], both["repeats"]) == (pytest.approx((0.70 + 0.72 + 0.20) / 3), 3)
    shown = rows_as_text(attack_table([run]))
    assert shown["of"].tolist()[:4] == ["all clients"] * 4
    assert set(shown["of"]) == {"all clients", "client 0", "client 1"}
    assert "of" not in rows_as_text(attack_table([other])).columns


def test_the_strongest_way_counts_and_upper_bounds_do_not(make_run: MakeRun) -> None:
    run = attacked(make_run(full=False), {BEST: 0.7, PER_TOKEN: 0.8, TOLD: 0.99}, 0.8)
    results = Study([run]).results
    (row,) = strongest(results, "ssim").to_dict("records")
    assert (row["attack"], row["variant"], row["value"]) == ("position", "per-token", 0.8)
    assert set(strongest(results, "ssim", told=True)["attack"]) == {"position", "analytic"}


def test_of_a_distance_the_smallest_counts(make_run: MakeRun) -> None:
    run = make_run(full=False)
    far, near = (
        attack_row(run, metric="lpips", variant=str(value), value=value) for value in (0.6, 0.2)
    )
    run.append_attacks([far, near])
    assert strongest(Study([run]).results, "lpips")["value"].tolist() == [0.2]


def test_table6_stands_beside_the_paper(make_run: MakeRun) -> None:
    runs = [make_run("row", full=False, defences="lp:0.05"),
            make_run("none", full=False, defences="lp:0.05", permute="none")]  # fmt: skip
    for run, value in zip(runs, (0.2, 0.6), strict=True):
        attacked(run, {BLACK_BOX: value, BEST: value}, 0.8)
    table = table6(Study(runs))
    assert list(zip(table["setting"], table["attack"], strict=True)) == [
        ("LP 0.05", "decoder"), ("LP 0.05", "position"), ("LP 0.05 + row", "decoder"),
        ("LP 0.05 + row", "position"),
    ]  # fmt: skip
    first = table.iloc[0]
    assert (first["ssim"], first["ssim_paper"], first["psnr"]) == pytest.approx((0.6, 0.5, 22.0))
    assert (first["ssim_low"], first["ssim_mean_image"]) == pytest.approx((0.58, 0.14))
    assert (first["paper_accuracy"], first["paper_ssim"]) == (0.901, 0.450)
    assert table["paper_ssim"].isna().tolist() == [False, True, False, True]
    assert table["f_sim"].isna().all()


def test_the_papers_rows_are_found_only_where_they_belong() -> None:
    def row(family: str, strength: str, permute: str, **more: object) -> object:
        return paper_row(Setting(family=family, strength=strength, permute=permute, **more))  # type: ignore[arg-type]

    assert row("LP", "0.05", "row") == TABLE_6["LP", "row"]
    assert row("GN", "3", "none") == TABLE_6["GN", "none"]
    for other in (
        row("LP", "0.01", "none"), row("LP", "", "none"), row("SL", "", "row"),
        row("GN", "1", "row+column"), row("GN", "1", "none", keys=(("cut", "1"),)),
    ):  # fmt: skip
        assert other is None


def test_runs_without_attacks_make_empty_tables(run: RunFolder, make_run: MakeRun) -> None:
    bare = Study([make_run("bare", full=False)])
    assert bare.table.empty
    assert table6(bare).empty
    assert strongest(bare.results, "ssim").empty
    mixed = Study([run, *bare.runs])
    assert len(mixed.table) == 1
    assert math.isnan(NAN)
