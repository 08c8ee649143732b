# SPDX-License-Identifier: Apache-2.0
"""Whole models conjugate by rule: what each is recognised by, and that logits stay the same."""

import copy
from collections.abc import Callable

import pytest
import timm
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from equivariance import (
    RULES,
    ColumnPermutation,
    ConjugationError,
    Secret,
    UnknownArchitectureError,
    architecture_of,
    conjugate_,
    conjugate_state,
    conjugate_tensor,
    rules_for,
)

SECRET = Secret.from_seed(0)
Perturb = Callable[[nn.Module], nn.Module]


def vit(**options: object) -> nn.Module:
    options = {"img_size": 16, "patch_size": 8, "embed_dim": 16, "depth": 2, "num_heads": 4,
               "num_classes": 3, **options}  # fmt: skip
    return timm.models.vision_transformer.VisionTransformer(**options)


def eva(**options: object) -> nn.Module:
    return timm.models.eva.Eva(
        img_size=16, patch_size=8, embed_dim=16, depth=2, num_heads=4, num_classes=3, **options
    )


def bert(kind: str = "BertForSequenceClassification") -> nn.Module:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
                                     intermediate_size=12, vocab_size=20)  # fmt: skip
    return getattr(transformers, kind)(config)


def gpt2(kind: str = "GPT2LMHeadModel") -> nn.Module:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(n_embd=16, n_layer=2, n_head=4, vocab_size=20, n_positions=9,
                                     bos_token_id=0, eos_token_id=0)  # fmt: skip
    config.pad_token_id = 0
    return getattr(transformers, kind)(config)


def hf_vit(kind: str = "ViT", **options: object) -> nn.Module:
    transformers = pytest.importorskip("transformers")
    config = getattr(transformers, f"{kind}Config")(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=12,
        mlp_ratio=2, image_size=16, patch_size=8, **options)  # fmt: skip
    suffix = "Model" if kind.startswith("Dinov2") else "ForImageClassification"
    return getattr(transformers, kind + suffix)(config)


def encoder(*, norm_first: bool = False, dim: int = 16) -> nn.Module:
    layer = nn.TransformerEncoderLayer(dim, 4, 20, batch_first=True, norm_first=norm_first)
    return nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(dim), enable_nested_tensor=False)


def distilled() -> nn.Module:
    return timm.models.deit.VisionTransformerDistilled(
        img_size=16, patch_size=8, embed_dim=16, depth=2, num_heads=4, num_classes=3
    )


def pixels() -> Tensor:
    return torch.randn(2, 3, 16, 16, dtype=torch.float64)


def words() -> Tensor:
    return torch.randint(0, 20, (2, 7))


def logits(model: nn.Module, inputs: Tensor) -> Tensor:
    output = model(inputs)
    if isinstance(output, Tensor):
        return output
    found = [value for name, value in output.items() if name.endswith("logits")]
    assert found
    return torch.cat([value.flatten(1) for value in found], dim=1)


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Tensor], str]] = {
    "vit": (vit, pixels, "timm-vit"),
    "vit-registers": (
        lambda: vit(reg_tokens=4, init_values=0.1, no_embed_class=True, pre_norm=True),
        pixels,
        "timm-vit",
    ),
    "vit-distilled": (distilled, pixels, "timm-vit"),
    "vit-mean": (lambda: vit(global_pool="avg", class_token=False), pixels, "timm-vit"),
    "vit-map": (lambda: vit(global_pool="map", class_token=False), pixels, "timm-vit"),
    "eva": (lambda: eva(qkv_fused=False, init_values=0.1), pixels, "timm-vit"),
    "eva-fused": (lambda: eva(swiglu_mlp=True, scale_mlp=True), pixels, "timm-vit"),
    "hf-vit": (hf_vit, pixels, "hf-vit"),
    "bert": (bert, words, "hf-bert"),
    "bert-masked": (lambda: bert("BertForPreTraining"), words, "hf-bert"),
    "bert-tokens": (lambda: bert("BertForTokenClassification"), words, "hf-bert"),
    "bert-answers": (lambda: bert("BertForQuestionAnswering"), words, "hf-bert"),
    "bert-next": (lambda: bert("BertForNextSentencePrediction"), words, "hf-bert"),
    "deit": (lambda: hf_vit("DeiT"), pixels, "hf-vit"),
    "gpt2": (gpt2, words, "hf-gpt2"),
    "gpt2-score": (lambda: gpt2("GPT2ForSequenceClassification"), words, "hf-gpt2"),
    "gpt2-tokens": (lambda: gpt2("GPT2ForTokenClassification"), words, "hf-gpt2"),
    "gpt2-answers": (lambda: gpt2("GPT2ForQuestionAnswering"), words, "hf-gpt2"),
}


@pytest.mark.parametrize("heads", [4, None], ids=["headwise", "none"])
@pytest.mark.parametrize("name", MODELS)
def test_a_whole_model_keeps_its_logits(perturb: Perturb, name: str, heads: int | None) -> None:
    make, draw, architecture = MODELS[name]
    model = perturb(make())
    assert architecture_of(model).name == architecture_of(model.state_dict()).name == architecture
    key = ColumnPermutation.sample(SECRET, dim=16, heads=heads)
    changed = copy.deepcopy(model)
    conjugate_(changed, key, rules=rules_for(model, scope="model"))
    inputs = draw()
    assert_close(logits(changed, inputs), logits(model, inputs), rtol=1e-12, atol=1e-12)
    moved = [
        name
        for (name, old), new in zip(model.named_parameters(), changed.parameters(), strict=True)
        if not torch.equal(old, new)
    ]
    assert any("embed" in name or "wte" in name for name in moved)
    assert any("attn" in name or "attention" in name for name in moved)


@pytest.mark.parametrize("name", MODELS)
def test_the_paper_s_scope_leaves_all_but_blocks(perturb: Perturb, name: str) -> None:
    model = perturb(MODELS[name][0]())
    key = ColumnPermutation.sample(SECRET, dim=16, heads=4)
    state = {n: t for n, t in model.state_dict().items() if t.is_floating_point()}
    changed = conjugate_state(state, key, rules=rules_for(model))
    rules = RULES[architecture_of(model).name]
    inside = {n for n in state if any(rule.pattern.fullmatch(n) for rule in rules)}
    assert len(inside) > 20
    moved = {n for n in state if not torch.equal(state[n], changed[n])}
    assert moved <= inside
    assert len(moved) > len(inside) / 2
    one = next(n for n in moved if state[n].ndim == 2)
    assert torch.equal(conjugate_tensor(one, state[one], key, rules=rules), changed[one])


@pytest.mark.parametrize(
    ("kind", "options"),
    [("Dinov2", {}), ("Dinov2", {"use_swiglu_ffn": True}), ("Dinov2WithRegisters", {})],
    ids=["dinov2", "dinov2-gated", "dinov2-registers"],
)
def test_features_of_hf_dinov2_come_out_permuted(
    perturb: Perturb, kind: str, options: dict[str, object]
) -> None:
    model = perturb(hf_vit(kind, **options))
    key = ColumnPermutation.sample(SECRET, dim=16, heads=4)
    changed = copy.deepcopy(model)
    conjugate_(changed, key, rules=rules_for(model, scope="model"))
    assert architecture_of(model.state_dict()).name == "hf-vit"
    x = pixels()
    features, expected = changed(x).last_hidden_state, key.apply(model(x).last_hidden_state)
    assert_close(features, expected, rtol=1e-12, atol=1e-12)
    assert (features - model(x).last_hidden_state).abs().max() > 0.1


def test_names_of_older_transformers_are_known() -> None:
    names = ["vit.encoder.layer.0.attention.attention.query.weight",
             "vit.encoder.layer.0.attention.output.dense.weight",
             "vit.encoder.layer.0.intermediate.dense.weight",
             "vit.encoder.layer.0.output.dense.weight"]  # fmt: skip
    assert architecture_of(names).name == "hf-vit"
    assert architecture_of(["h.0.attn.bias", "h.0.attn.c_attn.weight"]).name == "hf-gpt2"
    mask = torch.ones(1, 1, 3, 3).tril()
    same = conjugate_tensor("h.0.attn.bias", mask, torch.arange(3), inner="none",
                            rules=RULES["hf-gpt2"])  # fmt: skip
    assert torch.equal(same, mask)


def test_an_unknown_architecture_is_named_with_what_is_missing() -> None:
    model = nn.Sequential(nn.Conv1d(3, 3, 1), nn.LayerNorm(3))
    with pytest.raises(UnknownArchitectureError, match=r"known are: timm-vit, hf-vit, hf-bert"):
        rules_for(model)
    with pytest.raises(UnknownArchitectureError, match=r"in timm-vit, the nearest:\n  blocks.0.x"):
        rules_for(["blocks.0.norm1.weight", "blocks.0.attn.qkv.weight", "blocks.0.x"])
    with pytest.raises(UnknownArchitectureError, match="no parameters"):
        rules_for(nn.GELU())
    both = nn.ModuleList([vit(), encoder()])
    with pytest.raises(UnknownArchitectureError, match="several architectures: timm-vit, torch-en"):
        rules_for(both)
    with pytest.raises(ValueError, match="scope 'all' is unknown; allowed are blocks, model"):
        rules_for(vit(), scope="all")  # type: ignore[arg-type]


def test_a_known_block_with_an_unknown_part_lists_it() -> None:
    model = vit()
    model.blocks[1].adapter = nn.Linear(16, 16)
    key = ColumnPermutation.sample(SECRET, dim=16, heads=4)
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(ConjugationError) as error:
        conjugate_(model, key, rules=rules_for(model))
    assert str(error.value).splitlines()[1:] == [
        "  blocks.1.adapter.weight [16, 16]: no rule for this name",
        "  blocks.1.adapter.bias [16]: no rule for this name",
    ]
    assert_close(model.state_dict(), before, rtol=0, atol=0)


def test_rotary_positions_refuse_headwise() -> None:
    model = eva(use_rot_pos_emb=True)
    with pytest.raises(ValueError, match=r"rope \(RotaryEmbedding\w*\): rotary positions pair"):
        conjugate_(model, ColumnPermutation.identity(16, heads=4), rules=rules_for(model))
    conjugate_(model, ColumnPermutation.identity(16), rules=rules_for(model))


def test_blocks_whose_positions_come_from_outside_refuse_headwise() -> None:
    """The blocks alone do not hold the rotary embedding; a model without one says so."""
    key = ColumnPermutation.identity(16, heads=4)
    for blocks in (eva().blocks, eva(attn_type="rope").blocks):
        with pytest.raises(ValueError, match=r"0 \(EvaBlock\): rotary positions pair"):
            conjugate_(blocks, key)
    conjugate_(eva(), key, rules=rules_for(eva()))


def test_a_permutation_for_other_heads_is_refused() -> None:
    key = ColumnPermutation.identity(16, heads=4)
    with pytest.raises(ValueError, match="heads 2: the column permutation is for 4"):
        conjugate_(vit(), key, heads=2, rules=rules_for(vit()))
    with pytest.raises(ValueError, match="heads must be given"):
        conjugate_state({}, torch.arange(4))
