# SPDX-License-Identifier: Apache-2.0
"""``permsplit verify``: tables, files, exit codes and refusals."""

from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from equivariance.experiments import EXPERIMENTS
from equivariance.experiments import pma as pma_experiment
from server_app.cli import app

QUICK = ("--set", "steps=1", "--set", "elements=3", "--set", "dim=4", "--set", "batch-size=2")


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["verify", *map(str, arguments)], env={"COLUMNS": "160"})


def test_a_claim_that_holds_is_exit_code_0_and_a_csv(tmp_path: Path) -> None:
    out = tmp_path / "pma.csv"
    result = invoke("pma", *QUICK, "--out", out)
    assert result.exit_code == 0
    table = pd.read_csv(out)
    assert table.columns.tolist() == [
        "quantity",
        "case",
        "value",
        "paper",
        "claim",
        "max_abs",
        "max_rel",
        "tolerance",
        "holds",
    ]
    assert table["holds"].all()
    for quantity in table["quantity"]:
        assert quantity in result.output


def test_a_claim_that_does_not_hold_is_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A seed of its own for every model: training plain and permuted then start apart.
    models = iter(range(100))
    real = pma_experiment._model
    monkeypatch.setattr(
        pma_experiment,
        "_model",
        lambda options: real(options.model_copy(update={"seed": next(models)})),
    )
    out = tmp_path / "pma.csv"
    result = invoke("pma", *QUICK, "--out", out)
    assert result.exit_code == 1
    assert "pma: does not hold: weights, row, 1 steps" in result.output
    assert not pd.read_csv(out)["holds"].all()


def test_list_shows_experiments_and_options() -> None:
    result = invoke("--list")
    assert result.exit_code == 0
    for name, experiment in EXPERIMENTS.items():
        assert name in result.output
        assert experiment.summary in result.output
    result = invoke("authorization", "--list")
    assert result.exit_code == 0
    assert "pretrain-steps" in result.output
    assert "headwise | none" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "permsplit verify --list shows all"),
        (("pam",), "experiment pam: unknown; allowed are vit-test-time, vit-training"),
        (("pma", "--set", "steps"), "--set steps: write OPTION=VALUE"),
        (("pma", "--set", "steps=-1", "--set", "sedes=1"), "did you mean seeds?"),
        (("pma", "--set", "dim=9"), "dim = 9: must be a multiple of heads = 4"),
        (("pma", "--out", "none/x.csv"), "--out none/x.csv: the folder none does not exist"),
        (("pma", "--out", "."), "--out .: is a folder"),
        (("vit-training", "--set", "data=none"), "data = none: allowed are synthetic:N"),
    ],
)
def test_refusals_are_one_message(arguments: tuple[str, ...], message: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output
