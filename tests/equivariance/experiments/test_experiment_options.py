# SPDX-License-Identifier: Apache-2.0
"""Options: texts are parsed, all problems are told at once, every experiment describes its own."""

import pytest

from equivariance.experiments import (
    EXPERIMENTS,
    ExperimentError,
    Options,
    describe_options,
    parse_options,
)
from equivariance.experiments.pma import PmaOptions


def test_texts_become_numbers() -> None:
    options = parse_options(PmaOptions, {"batch-size": "3", "seed": "7", "dtype": "float32"})
    assert (options.batch_size, options.seed, options.dtype) == (3, 7, "float32")
    assert options == PmaOptions.of(batch_size=3, seed=7, dtype="float32")


def test_all_problems_are_told_at_once() -> None:
    values = {"batch-size": "x", "seed": "-1", "dtype": "int8", "sedes": "2", "device": "moon"}
    with pytest.raises(ExperimentError) as caught:
        parse_options(PmaOptions, values)
    text = str(caught.value)
    assert "batch-size = x" in text
    assert "seed = -1: input should be greater than or equal to 0" in text
    assert "dtype = int8: input should be 'float64' or 'float32'" in text
    assert "sedes = 2: unknown option; did you mean seeds?" in text
    assert "device = moon" in text


def test_options_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        PmaOptions.of().seed = 1  # type: ignore[misc]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_describes_its_options(name: str) -> None:
    kind = EXPERIMENTS[name].options
    assert issubclass(kind, Options)
    rows = list(describe_options(kind))
    assert all(all(row) for row in rows)
    assert [row[0] for row in rows if row[0] in ("seed", "dtype", "device")]
    defaults = {row[0]: "" if row[2] == '""' else row[2] for row in rows}
    assert parse_options(kind, defaults) == kind.of()


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"seed": str(2**40)}, "seed = 1099511627776: input should be less than 4294967296"),
        ({"device": "meta"}, "device = meta"),
        ({"steps": "0"}, "steps = 0: input should be greater than or equal to 1"),
    ],
)
def test_values_with_which_nothing_can_be_shown(values: dict[str, str], problem: str) -> None:
    with pytest.raises(ExperimentError, match=problem):
        parse_options(PmaOptions, values)
