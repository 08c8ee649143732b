# SPDX-License-Identifier: Apache-2.0
"""Real architectures are equivariant to 1e-12 in float64, submodule by submodule.

Each check covers outputs, gradients by features and gradients by weights, for rows, columns and
both at once.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import timm
import torch
from torch import Tensor, nn

from equivariance import Inner, check_equivariance
from equivariance.checking import Test

Perturb = Callable[[nn.Module], nn.Module]
ALL: Sequence[Test] = ("row", "column", "both")
BOUND = 1e-12


def assert_holds(model: nn.Module, inputs: Any, **options: Any) -> None:
    tests = options.pop("tests", ALL)
    report = check_equivariance(model, inputs, tests=tests, tolerance=BOUND, **options)
    broken = report[~report["holds"]]
    assert broken.empty, broken.head().to_string()
    assert report["error"].max() <= BOUND
    kinds = {(test, quantity) for test in tests for quantity in ("output", "gradient", "weights")}
    assert set(zip(report["test"], report["quantity"], strict=True)) == kinds
    # What is permuted is seen to be: not everything is merely the same.
    for test, relation in (("row", "tokens"), ("column", "features"),
                           ("both", "tokens and features")):  # fmt: skip
        assert test not in tests or (report["relation"] == relation).sum() > 3
    calls = report[report["quantity"] == "output"]["module"]
    leaves = {name for name, m in model.named_modules() if isinstance(m, nn.LayerNorm)}
    assert leaves <= set(calls)


def images(size: int, batch: int = 2) -> Tensor:
    return torch.randn(batch, 3, size, size)


@pytest.mark.parametrize("per_sample", [True, False], ids=["per-sample", "per-batch"])
@pytest.mark.parametrize("inner", ["headwise", "none"])
def test_blocks(make_blocks: Callable[..., nn.Module], inner: Inner, per_sample: bool) -> None:
    stack = make_blocks(init_values=0.1).eval()
    assert_holds(stack, torch.randn(3, 6, 16), inner=inner, per_sample=per_sample)
    assert_holds(stack[0], torch.randn(3, 6, 16), inner=inner, per_sample=per_sample)


def test_blocks_with_normed_queries_and_keys(make_blocks: Callable[..., nn.Module]) -> None:
    assert_holds(make_blocks(qk_norm=True), torch.randn(3, 6, 16), inner="none")


@pytest.mark.parametrize(
    ("size", "depth", "per_sample"),
    [("tiny", 2, True), ("tiny", 2, False), ("small", 1, True), ("base", 1, True)],
)
def test_timm_vit(perturb: Perturb, size: str, depth: int, per_sample: bool) -> None:
    model = timm.create_model(f"vit_{size}_patch16_224", img_size=32, depth=depth, num_classes=3)
    assert_holds(perturb(model), images(32), per_sample=per_sample)


@pytest.mark.slow
@pytest.mark.parametrize("size", ["tiny", "small", "base"])
def test_timm_vit_in_full(perturb: Perturb, size: str) -> None:
    model = timm.create_model(f"vit_{size}_patch16_224", img_size=64, num_classes=3)
    assert_holds(perturb(model), images(64))


@pytest.mark.parametrize("per_sample", [True, False], ids=["per-sample", "per-batch"])
def test_dinov2_with_layer_scale_and_registers(perturb: Perturb, per_sample: bool) -> None:
    model = timm.create_model("vit_small_patch14_reg4_dinov2", img_size=28, depth=2)
    assert model.num_reg_tokens == 4
    assert hasattr(model.blocks[0].ls1, "gamma")
    assert_holds(perturb(model), images(28), per_sample=per_sample)


@pytest.mark.slow
def test_dinov2_in_full(perturb: Perturb) -> None:
    model = timm.create_model("vit_small_patch14_reg4_dinov2", img_size=56)
    assert_holds(perturb(model), images(56))


@pytest.mark.parametrize("per_sample", [True, False], ids=["per-sample", "per-batch"])
def test_hf_vit(perturb: Perturb, per_sample: bool) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
                                    intermediate_size=12, image_size=16, patch_size=8)  # fmt: skip
    model = transformers.ViTForImageClassification(config)
    assert_holds(perturb(model), images(16), per_sample=per_sample)


def padded_words() -> dict[str, Tensor]:
    mask = torch.ones(3, 7, dtype=torch.int64)
    mask[1, 4:] = mask[2, 2:] = 0
    return {"input_ids": torch.randint(0, 20, (3, 7)), "attention_mask": mask}


def tiny_bert() -> nn.Module:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
                                     intermediate_size=12, vocab_size=20)  # fmt: skip
    return transformers.BertForSequenceClassification(config)


@pytest.mark.parametrize("per_sample", [True, False], ids=["per-sample", "per-batch"])
def test_bert_with_padding_between_embeddings_and_pooler(
    perturb: Perturb, per_sample: bool
) -> None:
    assert_holds(perturb(tiny_bert()), padded_words(), at="blocks", per_sample=per_sample)


@pytest.mark.parametrize("per_sample", [True, False], ids=["per-sample", "per-batch"])
def test_the_whole_bert_with_padding_from_words_and_positions(
    perturb: Perturb, per_sample: bool
) -> None:
    """Words, positions and mask move along; only the pooler's first token stays."""
    inputs = {**padded_words(), "position_ids": torch.arange(7).unsqueeze(0)}
    assert_holds(perturb(tiny_bert()), inputs, prefix=1, per_sample=per_sample)


@pytest.mark.parametrize("at", ["input", "blocks"])
def test_gpt2_columns(perturb: Perturb, at: Any) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(n_embd=16, n_layer=2, n_head=4, vocab_size=20, n_positions=9,
                                     bos_token_id=0, eos_token_id=0)  # fmt: skip
    model = perturb(transformers.GPT2LMHeadModel(config))
    assert_holds(model, padded_words(), tests=("column",), at=at)


@pytest.mark.parametrize("per_sample", [True, False], ids=["per-sample", "per-batch"])
@pytest.mark.parametrize("norm_first", [True, False], ids=["pre-norm", "post-norm"])
def test_torch_encoder_with_padding(perturb: Perturb, norm_first: bool, per_sample: bool) -> None:
    layer = nn.TransformerEncoderLayer(16, 4, 20, batch_first=True, norm_first=norm_first)
    model = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(16), enable_nested_tensor=False)
    padding = torch.zeros(3, 6, dtype=torch.bool)
    padding[1, 4:] = True
    inputs = {"src": torch.randn(3, 6, 16), "src_key_padding_mask": padding}
    assert_holds(perturb(model), inputs, per_sample=per_sample)


def test_torch_layer_with_tokens_first(perturb: Perturb) -> None:
    layer = perturb(nn.TransformerEncoderLayer(16, 4, 20))
    assert_holds(layer, torch.randn(6, 3, 16), batch_first=False)


def test_a_mask_of_pairs_moves_along(perturb: Perturb) -> None:
    layer = perturb(nn.TransformerEncoderLayer(16, 4, 20, batch_first=True))
    pairs = torch.randn(3 * 4, 6, 6)
    assert_holds(layer, {"src": torch.randn(3, 6, 16), "src_mask": pairs})
    shared = {"src": torch.randn(3, 6, 16), "src_mask": pairs[0]}
    assert_holds(layer, shared, per_sample=False)


def test_float32_is_checked_to_its_own_precision(make_blocks: Callable[..., nn.Module]) -> None:
    report = check_equivariance(make_blocks(), torch.randn(3, 6, 16), dtype=torch.float32)
    assert report["holds"].all()
    assert report["error"].max() > BOUND
