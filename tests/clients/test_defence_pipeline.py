# SPDX-License-Identifier: Apache-2.0
"""The pipeline of defences: declared order, declared point, one object for all purposes."""

from collections import Counter
from pathlib import Path

import pytest
import torch
from federation import federate, tiny_config
from torch import Tensor

from clients.defences import DEFENCES, Defence, build_pipeline, check_defences
from config import ConfigError, RunConfig, parse_run_config
from server_app.checks import RULES


def seeds(index: int) -> int:
    return 10 + index


def images() -> Tensor:
    return torch.randn(3, 3, 16, 16, generator=torch.Generator().manual_seed(0))


def tokens() -> Tensor:
    return torch.randn(3, 17, 16, generator=torch.Generator().manual_seed(0))


def pixels(tmp_path: Path, text: str) -> Tensor:
    return build_pipeline(tiny_config(tmp_path, defences=text)).on_pixels(images(), seeds)


def embedded(tmp_path: Path, text: str) -> Tensor:
    config = tiny_config(tmp_path, defences=text, defence_point="embedding")
    return build_pipeline(config).on_tokens(tokens(), seeds)


def test_the_order_is_as_declared(tmp_path: Path) -> None:
    noise, low_pass = DEFENCES["gn"](0.5), DEFENCES["lp"](0.25)
    one, two = (torch.Generator().manual_seed(seeds(index)) for index in (0, 1))
    expected = noise.apply(low_pass.apply(images(), one, cell=4), two, cell=4)
    assert torch.equal(pixels(tmp_path, "lp:0.25,gn:0.5"), expected)
    assert not torch.allclose(pixels(tmp_path, "gn:0.5,lp:0.25"), expected, atol=0.1)


def test_each_defence_has_a_generator_of_its_own(tmp_path: Path) -> None:
    once, twice = pixels(tmp_path, "gn:1"), pixels(tmp_path, "gn:1,gn:1")
    assert not torch.allclose(twice - images(), 2 * (once - images()), atol=0.1)


def test_a_pipeline_acts_at_its_point_only(tmp_path: Path) -> None:
    at_pixels = build_pipeline(tiny_config(tmp_path, defences="gn:1"))
    at_tokens = build_pipeline(tiny_config(tmp_path, defences="gn:1", defence_point="embedding"))
    assert torch.equal(at_pixels.on_tokens(tokens(), seeds), tokens())
    assert torch.equal(at_tokens.on_pixels(images(), seeds), images())
    assert not torch.equal(at_pixels.on_pixels(images(), seeds), images())
    assert not torch.equal(at_tokens.on_tokens(tokens(), seeds), tokens())


@pytest.mark.parametrize("text", ["lp:0.25", "bs:0"])
def test_prefix_tokens_are_left_alone(tmp_path: Path, text: str) -> None:
    defended = embedded(tmp_path, text)
    assert torch.equal(defended[:, 0], tokens()[:, 0])
    assert not torch.allclose(defended[:, 1:], tokens()[:, 1:])


def test_noise_covers_prefix_tokens_too(tmp_path: Path) -> None:
    noise = embedded(tmp_path, "gn:0.5") - tokens()
    assert noise[:, 0].std().item() == pytest.approx(0.5, rel=0.3)
    assert noise[:, 1:].std().item() == pytest.approx(0.5, rel=0.1)


def test_the_embedding_is_laid_out_as_the_image(tmp_path: Path) -> None:
    ramp = torch.arange(4.0).repeat(4)[None, :, None].expand(1, 16, 16)  # the patch's column
    config = tiny_config(tmp_path, defences="lp:0.25", defence_point="embedding")
    sent = torch.cat([torch.zeros(1, 1, 16), ramp], dim=1)
    filtered = build_pipeline(config).on_tokens(sent, seeds)[0, 1:, 0].view(4, 4)
    direct = DEFENCES["lp"](0.25).apply(ramp.transpose(1, 2).view(1, 16, 4, 4), None, cell=1)  # type: ignore[arg-type]
    torch.testing.assert_close(filtered, direct[0, 0])
    torch.testing.assert_close(filtered, filtered[:1].expand(4, 4))  # rows of patches are alike


def test_a_batch_shuffle_of_pixels_moves_patches(tmp_path: Path) -> None:
    def patches(batch: Tensor) -> list[list[float]]:
        cells = batch.unfold(2, 4, 4).unfold(3, 4, 4).permute(0, 2, 3, 1, 4, 5).reshape(-1, 48)
        return sorted(cells.tolist())

    shuffled = pixels(tmp_path, "bs:0")
    assert patches(shuffled) == patches(images())
    assert not torch.equal(shuffled, images())


@pytest.mark.parametrize("point", ["pixels", "embedding"])
def test_one_pipeline_serves_training_and_evaluation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    calls: Counter[tuple[int, int]] = Counter()

    class Counting(Defence):
        name, allowed = "count", "anything"

        @classmethod
        def accepts(cls, strength: float) -> bool:
            return True

        def apply(self, grid_BCHW: Tensor, generator: torch.Generator, *, cell: int) -> Tensor:
            calls[id(self), len(grid_BCHW)] += 1
            return grid_BCHW

    monkeypatch.setitem(DEFENCES, "count", Counting)
    config = tiny_config(
        tmp_path, defences="count:1", defence_point=point, schedule="sequential", rounds=1,
        steps_per_round=1, batch_size=5, evaluate_batch_size=64,
    )  # fmt: skip
    run = federate(config, 1).train()
    images = run.strategy.roster.images
    assert {who for who, _ in calls} == {next(iter(calls))[0]}
    assert {size for _, size in calls} == {5, images("validation"), images("test")}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"defences": "gn:-1"}, "gn:-1 is not allowed; gn takes sigma, a finite number >= 0"),
        ({"defences": "lp:0.01"}, "lp:0.01 keeps no frequency of a grid 16 wide"),
        (
            {"defences": "gn:1,lp:0.1", "defence-point": "embedding"},
            "lp:0.1 keeps no frequency of a grid 4 wide; use a radius >= 0.25",
        ),
    ],
)
def test_the_rule_says_what_is_wrong(changes: dict[str, object], message: str) -> None:
    values = {"image-size": 16, "patch-size": 4, **changes}
    with pytest.raises(ConfigError) as caught:
        parse_run_config(values, rules=RULES)
    (problem,) = caught.value.problems
    assert (problem.key, message in problem.message) == ("defences", True)


def test_the_rule_is_content_with_what_fits_and_leaves_models_to_theirs() -> None:
    assert not list(check_defences(RunConfig.model_validate({"defences": "lp:0.1,bs:0.4,gn:0"})))
    assert not list(check_defences(RunConfig.model_validate({"model": "no", "defences": "gn:1"})))
