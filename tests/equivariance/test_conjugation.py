# SPDX-License-Identifier: Apache-2.0
"""Conjugated blocks on permuted features equal plain blocks: outputs, gradients, training."""

import copy
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest
import timm
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from timm.layers import Attention, GluMlp, SwiGLU
from timm.models.vision_transformer import Block, ResPostBlock
from torch import Tensor, nn
from torch.testing import assert_close

from equivariance import (
    RULES,
    ColumnPermutation,
    ConjugationError,
    Inner,
    Secret,
    conjugate_,
    conjugate_optimizer_,
    conjugate_state,
    conjugate_tensor,
    invert,
    permute_columns,
    permute_rows,
    rules_for,
    sample_column_order,
    unpermute_columns,
    unpermute_rows,
)

quick = settings(deadline=None, max_examples=25, derandomize=True)
assert_exact = partial(assert_close, rtol=1e-12, atol=1e-12)
MakeBlocks = Callable[..., nn.Module]


def draw_order(dim: int, heads: int, inner: Inner, seed: int = 0) -> Tensor:
    heads = heads if inner == "headwise" else 1
    return sample_column_order(Secret.from_seed(seed), dim=dim, heads=heads)


def conjugated(blocks: nn.Module, order: Tensor, **options: Any) -> nn.Module:
    blocks = copy.deepcopy(blocks)
    conjugate_(blocks, order, **options)
    return blocks


def gradients(blocks: nn.Module) -> dict[str, Tensor]:
    return {name: p.grad for name, p in blocks.named_parameters() if p.grad is not None}


def assert_commutes(
    blocks: nn.Module, order: Tensor, *, heads: int, inner: Inner, rows: Tensor | None = None
) -> None:
    """Compare outputs, feature gradients and weight gradients of the plain and the keyed run."""
    keyed = conjugated(blocks, order, heads=heads, inner=inner)
    z_BND, upstream = torch.randn(2, 3, 5, order.numel(), dtype=torch.float64)
    z_plain, z_keyed = z_BND.clone().requires_grad_(), z_BND.clone().requires_grad_()
    rows = torch.arange(5) if rows is None else rows
    y_plain = blocks(z_plain)
    y_keyed = keyed(permute_columns(permute_rows(z_keyed, rows), order))
    y_keyed = unpermute_rows(unpermute_columns(y_keyed, order), rows)
    torch.autograd.backward((y_plain, y_keyed), (upstream, upstream))
    assert_exact(y_keyed, y_plain)
    assert_exact(z_keyed.grad, z_plain.grad)
    expected = conjugate_state(gradients(blocks), order, heads=heads, inner=inner)
    assert_exact(gradients(keyed), expected)
    assert len(expected) == len(list(blocks.parameters()))


@quick
@given(
    heads=st.integers(1, 4),
    size=st.integers(1, 5),
    inner=st.sampled_from(["headwise", "none"]),
    seed=st.integers(0, 1000),
)
def test_blocks_commute_with_column_permutations(
    make_blocks: MakeBlocks, heads: int, size: int, inner: Inner, seed: int
) -> None:
    blocks = make_blocks(heads * size, heads, depth=1)
    order = draw_order(heads * size, heads, inner, seed)
    assert_commutes(blocks, order, heads=heads, inner=inner)


@quick
@given(inner=st.sampled_from(["headwise", "none"]), seed=st.integers(0, 1000))
def test_blocks_commute_with_both(make_blocks: MakeBlocks, inner: Inner, seed: int) -> None:
    rows = torch.rand(3, 5, generator=torch.Generator().manual_seed(seed)).argsort(dim=-1)
    order = draw_order(16, 4, inner, seed)
    assert_commutes(make_blocks(), order, heads=4, inner=inner, rows=rows)


@pytest.mark.parametrize("inner", ["headwise", "none"])
@pytest.mark.parametrize(
    "options",
    [
        {"init_values": 0.1},
        {"qkv_bias": False, "proj_bias": False},
        {"scale_attn_norm": True, "scale_mlp_norm": True},
        {"norm_layer": nn.RMSNorm},
        {"mlp_layer": SwiGLU},
        {"mlp_layer": GluMlp},
    ],
    ids=str,
)
def test_variants_of_blocks(make_blocks: MakeBlocks, inner: Inner, options: Any) -> None:
    assert_commutes(make_blocks(**options), draw_order(16, 4, inner), heads=4, inner=inner)


@pytest.mark.parametrize("inner", ["headwise", "none"])
def test_post_norm_and_gated_blocks(
    randomise: Callable[[nn.Module], nn.Module], make_blocks: MakeBlocks, inner: Inner
) -> None:
    post = randomise(nn.Sequential(ResPostBlock(16, 4, qkv_bias=True)))
    assert_commutes(post, draw_order(16, 4, inner), heads=4, inner=inner)
    gated = make_blocks()
    for block in gated.children():
        block.attn = Attention(16, 4, qkv_bias=True, gated=True)
    assert_commutes(randomise(gated), draw_order(16, 4, inner), heads=4, inner=inner)


def test_qk_norm_needs_the_inner_features_unpermuted(make_blocks: MakeBlocks) -> None:
    blocks = make_blocks(qk_norm=True, init_values=0.1)
    assert_commutes(blocks, draw_order(16, 4, "none"), heads=4, inner="none")
    before = copy.deepcopy(blocks.state_dict())
    with pytest.raises(ConjugationError, match=r'q_norm\.weight \[4\]: .* use inner="none"'):
        conjugate_(blocks, draw_order(16, 4, "headwise"), heads=4)
    assert_close(blocks.state_dict(), before, rtol=0, atol=0)


def test_mixing_heads_breaks_it(make_blocks: MakeBlocks) -> None:
    """Negative control: with a permutation across heads the outputs differ grossly."""
    blocks, order = make_blocks(), draw_order(16, 1, "headwise")
    with pytest.raises(ValueError, match="mixes heads"):
        conjugate_(blocks, order, heads=4)
    with pytest.raises(ValueError, match=r"0\.attn has 4 heads: column order \[16\] mixes heads"):
        conjugate_(blocks, order, heads=1)
    mixed = copy.deepcopy(blocks)  # as if there were one head: that passes where no model is known
    mixed.load_state_dict(conjugate_state(blocks.state_dict(), order, heads=1))
    z = torch.randn(3, 5, 16, dtype=torch.float64)
    difference = mixed(permute_columns(z, order)) - permute_columns(blocks(z), order)
    assert difference.abs().max() > 1e-2


def test_plain_features_are_wrong_for_a_conjugated_model(make_blocks: MakeBlocks) -> None:
    blocks, order = make_blocks(), draw_order(16, 4, "headwise")
    z = torch.randn(3, 5, 16, dtype=torch.float64)
    assert (conjugated(blocks, order, heads=4)(z) - blocks(z)).abs().max() > 1e-2


def train(blocks: nn.Module, optimiser: torch.optim.Optimizer, batches: Tensor) -> None:
    for z, target in batches:
        optimiser.zero_grad()
        ((blocks(z) - target) ** 2).mean().backward()
        optimiser.step()


def sgd(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=1e-3, momentum=0.9, weight_decay=0.01)


def adamw(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    # Softmax cancels the key bias: its gradient is rounding noise, 1e-17, that Adam would divide
    # by its own size. A larger eps keeps noise small, and the comparison sharp.
    return torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.01, eps=1e-4)


@pytest.mark.parametrize("inner", ["headwise", "none"])
@pytest.mark.parametrize("make_optimiser", [sgd, adamw])
def test_training_commutes(make_blocks: MakeBlocks, inner: Inner, make_optimiser: Any) -> None:
    plain, order = make_blocks(), draw_order(16, 4, inner)
    keyed = conjugated(plain, order, heads=4, inner=inner)
    batches = torch.randn(10, 2, 3, 5, 16, dtype=torch.float64)
    before = copy.deepcopy(plain.state_dict())
    train(plain, make_optimiser(plain.parameters()), batches)
    train(keyed, make_optimiser(keyed.parameters()), permute_columns(batches, order))
    conjugate_(keyed, invert(order), heads=4, inner=inner)
    assert_exact(keyed.state_dict(), plain.state_dict())
    assert (plain.state_dict()["0.mlp.fc1.weight"] - before["0.mlp.fc1.weight"]).abs().max() > 1e-3


def test_a_key_may_come_in_mid_training_with_the_moments(make_blocks: MakeBlocks) -> None:
    plain, order = make_blocks(), draw_order(16, 4, "headwise")
    batches = torch.randn(6, 2, 3, 5, 16, dtype=torch.float64)
    optimiser = adamw(plain.parameters())
    train(plain, optimiser, batches[:3])

    keyed = conjugated(plain, order, heads=4)
    keyed_optimiser = adamw(keyed.parameters())
    state = copy.deepcopy(optimiser.state_dict())
    names = [name for name, _ in plain.named_parameters()]
    for moment in ("exp_avg", "exp_avg_sq"):
        moments = {name: state["state"][i][moment] for i, name in enumerate(names)}
        for i, value in enumerate(conjugate_state(moments, order, heads=4).values()):
            state["state"][i][moment] = value
    keyed_optimiser.load_state_dict(state)

    train(plain, optimiser, batches[3:])
    train(keyed, keyed_optimiser, permute_columns(batches[3:], order))
    expected = conjugate_state(plain.state_dict(), order, heads=4)
    assert_exact(dict(keyed.state_dict()), expected)


def test_the_inverse_restores_bit_for_bit(make_blocks: MakeBlocks) -> None:
    blocks, order = make_blocks(init_values=0.1), draw_order(16, 4, "headwise")
    state = dict(blocks.state_dict())
    changed = conjugate_state(state, order, heads=4)
    assert list(changed) == list(state)
    assert not torch.equal(changed["0.norm1.weight"], state["0.norm1.weight"])
    restored = conjugate_state(changed, invert(order), heads=4)
    assert_close(restored, state, rtol=0, atol=0)


def test_state_and_module_agree_and_share_no_memory(make_blocks: MakeBlocks) -> None:
    blocks, order = make_blocks(), draw_order(16, 4, "headwise")
    blocks(torch.randn(3, 5, 16, dtype=torch.float64)).sum().backward()
    weights = conjugate_state(blocks.state_dict(), order, heads=4)
    moved = conjugate_state(gradients(blocks), order, heads=4)
    pointers = {tensor.data_ptr() for tensor in blocks.state_dict().values()}
    assert not pointers & {tensor.data_ptr() for tensor in weights.values()}
    conjugate_(blocks, order, heads=4)
    assert_close(dict(blocks.state_dict()), weights, rtol=0, atol=0)
    assert_close(gradients(blocks), moved, rtol=0, atol=0)


def test_names_may_start_anywhere_before_the_block(make_blocks: MakeBlocks) -> None:
    order = draw_order(16, 4, "headwise")
    state = dict(make_blocks(depth=1).state_dict())
    expected = conjugate_state(state, order, heads=4)
    for prefix in ("", "blocks.11.", "trunk.blocks.0."):
        renamed = {prefix + name.removeprefix("0."): value for name, value in state.items()}
        result = conjugate_state(renamed, order, heads=4, rules=RULES["timm-vit"])
        assert_close(list(result.values()), list(expected.values()), rtol=0, atol=0)


def test_every_parameter_that_does_not_fit_is_listed(make_blocks: MakeBlocks) -> None:
    state = dict(make_blocks(depth=1).state_dict())
    state["norm.weight"] = torch.ones(16)
    state["attn_pool.mlp.fc1.weight"] = torch.ones(16, 16)
    state["blocks.0.norm1.weight"] = torch.ones(12)
    state["blocks.0.mlp.fc2.weight"] = torch.ones(16, 4, 4)
    with pytest.raises(ConjugationError) as error:
        conjugate_state(state, draw_order(16, 4, "headwise"), heads=4)
    assert str(error.value).splitlines() == [
        "cannot conjugate these parameters:",
        "  norm.weight [16]: no rule for this name",
        "  attn_pool.mlp.fc1.weight [16, 16]: no rule for this name",
        "  blocks.0.norm1.weight [12]: its rule expects 16 where it has 12",
        "  blocks.0.mlp.fc2.weight [16, 4, 4]: its rule expects 2 axes",
    ]


def test_an_unknown_inner_or_no_permutation_is_refused(make_blocks: MakeBlocks) -> None:
    state = make_blocks().state_dict()
    with pytest.raises(ValueError, match="'all' is unknown; allowed are headwise, none"):
        conjugate_state(state, torch.arange(16), heads=4, inner="all")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not a permutation"):
        conjugate_state(state, torch.zeros(16).long(), heads=4, inner="none")


def test_attention_with_other_heads_is_refused(make_blocks: Callable[..., nn.Module]) -> None:
    """What keeps eight heads together does not keep four."""
    blocks = make_blocks()
    before = copy.deepcopy(blocks.state_dict())
    key = ColumnPermutation.sample(Secret.from_seed(0), dim=16, heads=8)
    with pytest.raises(ValueError, match=r"0\.attn has 4 heads: column order \[16\] mixes heads"):
        conjugate_(blocks, key)
    with pytest.raises(ValueError, match=r"0\.attn has 4 heads"):
        conjugate_optimizer_(torch.optim.SGD(blocks.parameters()), blocks, key)
    assert_close(blocks.state_dict(), before, rtol=0, atol=0)
    conjugate_(blocks, ColumnPermutation.sample(Secret.from_seed(0), dim=16, heads=None))


def test_an_attention_pool_may_have_other_heads() -> None:
    model = timm.models.vision_transformer.VisionTransformer(
        img_size=16, patch_size=8, embed_dim=16, depth=1, num_heads=4, num_classes=3,
        global_pool="map", class_token=False)  # fmt: skip
    model.attn_pool.num_heads = 2
    key = ColumnPermutation.sample(Secret.from_seed(0), dim=16, heads=4)
    conjugate_(model, key, rules=rules_for(model))


def test_tied_weights_move_once(make_blocks: Callable[..., nn.Module]) -> None:
    blocks = make_blocks(depth=2)
    plain = copy.deepcopy(blocks.state_dict())
    blocks[1].mlp = blocks[0].mlp
    blocks[1].norm1.weight = nn.Parameter(blocks[0].norm1.weight.data)
    key = ColumnPermutation.sample(Secret.from_seed(0), dim=16, heads=4)
    conjugate_(blocks, key)
    for name in ("mlp.fc1.weight", "norm1.weight"):
        expected = conjugate_tensor(f"0.{name}", plain[f"0.{name}"], key)
        assert torch.equal(blocks.state_dict()[f"1.{name}"], expected)


def test_a_second_name_needs_no_rule() -> None:
    model = timm.models.vision_transformer.VisionTransformer(
        img_size=16, patch_size=8, embed_dim=16, depth=1, num_heads=4, num_classes=3
    )
    plain = copy.deepcopy(model.state_dict())
    model.first = model.blocks[0]
    key = ColumnPermutation.sample(Secret.from_seed(0), dim=16, heads=4)
    conjugate_(model, key, rules=rules_for(model))
    name = "blocks.0.norm1.weight"
    assert torch.equal(model.state_dict()[name], conjugate_tensor(name, plain[name], key))


def test_weights_that_are_tied_across_rules_are_refused() -> None:
    """The input and output side of an MLP cannot both be right if they are one matrix."""
    model = nn.Sequential(Block(16, 4, mlp_ratio=1))
    model[0].mlp.fc2.weight = model[0].mlp.fc1.weight
    before = copy.deepcopy(model.state_dict())
    key = ColumnPermutation.sample(Secret.from_seed(0), dim=16, heads=4)
    with pytest.raises(
        ConjugationError,
        match=r"0\.mlp\.fc2\.weight \[16, 16\]: is tied to 0\.mlp\.fc1\.weight, which has another",
    ):
        conjugate_(model, key)
    assert_close(model.state_dict(), before, rtol=0, atol=0)
