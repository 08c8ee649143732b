# SPDX-License-Identifier: Apache-2.0
"""A run's configuration: all problems at once, each with what is allowed; then frozen."""

import pickle

import pytest
from pydantic import ValidationError

from config import ConfigError, Problem, RunConfig, keys, parse_run_config


def problems_of(**values: object) -> dict[str, str]:
    """Key and message of every problem; ``image_size=9`` sets ``image-size``."""
    with pytest.raises(ConfigError) as caught:
        parse_run_config({name.rstrip("_").replace("_", "-"): v for name, v in values.items()})
    return {problem.key: problem.message for problem in caught.value.problems}


def test_nothing_given_gives_the_defaults() -> None:
    assert parse_run_config({}) == RunConfig()


def test_all_problems_come_together() -> None:
    found = problems_of(
        imagesize=32,
        rounds="six",
        permute="rows",
        lr_client=-1.0,
        run_name="a/b",
        image_size=30,
        patch_size=4,
        resume=True,
    )
    assert found["imagesize"] == "unknown key; did you mean 'image-size'?"
    assert "valid integer" in found["rounds"]
    assert "'row+column'" in found["permute"]
    assert "greater than 0" in found["lr-client"]
    assert "pattern" in found["run-name"]
    assert found["patch-size"] == "must divide image-size = 30"
    assert found["resume"].startswith("needs run-name")
    assert len(found) == 7


def test_an_unknown_key_like_no_other_lists_all_keys() -> None:
    message = problems_of(zzz=1)["zzz"]
    assert message == f"unknown key; allowed are {', '.join(keys())}"


@pytest.mark.parametrize(
    ("key", "value"),
    [("rounds", True), ("rounds", 2.0), ("resume", "false"), ("data", 3), ("lr_client", "0.1")],
)
def test_types_are_not_coerced(key: str, value: object) -> None:
    assert problems_of(**{key: value}).keys() == {key.replace("_", "-")}


def test_whole_numbers_serve_as_floats() -> None:
    assert parse_run_config({"step-timeout": 5}).step_timeout == 5.0


@pytest.mark.parametrize(
    ("values", "key", "message"),
    [
        ({"permute_cls": True}, "permute-cls", 'needs return = "all"'),
        (
            {"permute_cls": True, "return_": "all", "permute": "column"},
            "permute-cls",
            'needs permute = "row" or "row+column"',
        ),
        ({"key_source": "file"}, "key-dir", 'key-source = "file" needs the folder'),
        ({"key_source": "random", "permute": "row+column"}, "key-source", "column.key in key-dir"),
        ({"lr_trunk": 1e-3, "lr_trunk_end": 2e-3}, "lr-trunk-end", "at most the start, 0.001"),
        ({"lr_client": 1e-3, "lr_client_end": 1.0}, "lr-client-end", "at most the start, 0.001"),
        ({"image_size": 32, "patch_size": 5}, "patch-size", "must divide image-size = 32"),
        ({"dim": 64, "heads": 5}, "heads", "must divide dim = 64"),
        ({"depth": 2, "cut": 2}, "cut", "must be 0 .. 1 (depth = 2)"),
        ({"resume": True}, "resume", "needs run-name"),
    ],
)
def test_what_does_not_fit_together(values: dict[str, object], key: str, message: str) -> None:
    found = problems_of(**values)
    assert found.keys() == {key}
    assert message in found[key]


def test_a_rule_is_silent_about_a_key_that_is_wrong_by_itself() -> None:
    assert problems_of(cut=-1).keys() == {"cut"}


def test_rules_of_other_packages_take_part() -> None:
    def rule(config: RunConfig) -> list[Problem]:
        return [Problem("model", config.model, "not today")]

    with pytest.raises(ConfigError, match=r'model = "x": not today') as caught:
        parse_run_config({"model": "x", "dim": 64, "heads": 5, "bogus": 0}, rules=[rule])
    assert {problem.key for problem in caught.value.problems} == {"model", "heads", "bogus"}


def test_frozen_and_hashable() -> None:
    config = parse_run_config({"rounds": 3})
    with pytest.raises(ValidationError):
        config.rounds = 4  # type: ignore[misc]
    assert hash(config) == hash(parse_run_config({"rounds": 3}))


def test_a_dump_parses_to_the_same() -> None:
    config = parse_run_config({"return": "all", "permute-cls": True, "image-size": 64})
    dumped = config.model_dump(by_alias=True)
    assert tuple(dumped) == keys()
    assert parse_run_config(dumped) == config


def test_the_error_text_shows_values_as_in_toml_and_pickles() -> None:
    error = ConfigError([Problem("resume", True, "no"), Problem("data", "x", "bad")])
    assert str(error).splitlines() == [
        "2 problems in the run configuration:",
        "  - resume = true: no",
        '  - data = "x": bad',
    ]
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is ConfigError
    assert again.problems == error.problems
    assert str(again) == str(error)


@pytest.mark.parametrize("key", ["lr-client", "weight-decay", "dirichlet-alpha", "step-timeout"])
@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_numbers_are_finite(key: str, value: float) -> None:
    with pytest.raises(ConfigError, match=key):
        parse_run_config({key: value})
