# SPDX-License-Identifier: Apache-2.0
"""Row permutations: the indexing itself, and that stacks of blocks commute with it."""

from collections.abc import Callable
from functools import partial

import pytest
import timm
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.testing import assert_close

from equivariance import check_permutation, permute_rows, unpermute_rows, with_prefix

quick = settings(deadline=None, max_examples=25, derandomize=True)
assert_exact = partial(assert_close, rtol=1e-12, atol=1e-12)


def draw_order(shape: tuple[int, ...]) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(1)).argsort(dim=-1)


@quick
@given(st.integers(1, 4), st.integers(1, 9), st.sampled_from([(), (3,), (2, 3)]), st.booleans())
def test_permute_picks_and_unpermute_restores(
    batch: int, tokens: int, features: tuple[int, ...], per_sample: bool
) -> None:
    x = torch.randn(batch, tokens, *features)
    order = draw_order((batch, tokens) if per_sample else (tokens,))
    permuted = permute_rows(x, order)
    for b in range(batch):
        assert torch.equal(permuted[b], x[b][order[b] if per_sample else order])
    assert torch.equal(unpermute_rows(permuted, order), x)
    assert torch.equal(permute_rows(unpermute_rows(x, order), order), x)


@pytest.mark.parametrize("shape", [(7,), (3, 7)])
def test_gradient_is_bitwise_the_unpermuted_one(shape: tuple[int, ...]) -> None:
    x = torch.randn(3, 7, 5, requires_grad=True)
    order, upstream = draw_order(shape), torch.randn(3, 7, 5)
    upstream[0, 0, 0] = -0.0
    (gradient,) = torch.autograd.grad(permute_rows(x, order), x, upstream)
    expected = unpermute_rows(upstream, order)
    assert torch.equal(gradient.view(torch.int32), expected.view(torch.int32))


def test_prefix_stays_in_front() -> None:
    order = with_prefix(torch.tensor([[2, 0, 1], [1, 0, 2]]), 2)
    assert order.tolist() == [[0, 1, 4, 2, 3], [0, 1, 3, 2, 4]]
    assert with_prefix(torch.tensor([1, 0]), 0).tolist() == [1, 0]
    assert with_prefix(torch.tensor([1, 0]), 1).tolist() == [0, 2, 1]
    check_permutation(order)


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (torch.zeros(7), r"int64; got torch.float32 \[7\]"),
        (torch.zeros(7, dtype=torch.int32), "int64; got torch.int32"),
        (torch.arange(6), r"\[6\] does not fit x \[3, 7, 5\]"),
        (torch.arange(7).expand(2, 7), r"\[2, 7\] does not fit x \[3, 7, 5\]"),
        (torch.arange(7).expand(3, 7, 7), "does not fit"),
    ],
)
@pytest.mark.parametrize("act", [permute_rows, unpermute_rows])
def test_an_order_that_does_not_fit_is_named(
    act: Callable[[Tensor, Tensor], Tensor], order: Tensor, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        act(torch.zeros(3, 7, 5), order)


def outputs_and_gradients(
    blocks: nn.Module, z: Tensor, upstream: Tensor, order: Tensor | None = None
) -> tuple[Tensor, list[Tensor]]:
    """Run the blocks on permuted tokens and unpermute; gradients of the weights, then of z."""
    z = z.clone().requires_grad_()
    y = blocks(z) if order is None else unpermute_rows(blocks(permute_rows(z, order)), order)
    return y, list(torch.autograd.grad(y, [*blocks.parameters(), z], upstream))


@quick
@given(
    heads=st.integers(1, 4),
    size=st.integers(1, 5),
    batch=st.integers(1, 3),
    tokens=st.integers(1, 9),
    per_sample=st.booleans(),
)
def test_blocks_commute_with_row_permutations(
    make_blocks: Callable[..., nn.Module],
    heads: int,
    size: int,
    batch: int,
    tokens: int,
    per_sample: bool,
) -> None:
    blocks = make_blocks(heads * size, heads, depth=1)
    z, upstream = torch.randn(2, batch, tokens, heads * size, dtype=torch.float64)
    order = draw_order((batch, tokens) if per_sample else (tokens,))
    y, gradients = outputs_and_gradients(blocks, z, upstream)
    y_permuted, gradients_permuted = outputs_and_gradients(blocks, z, upstream, order)
    assert_exact(y_permuted, y)
    for permuted, plain in zip(gradients_permuted, gradients, strict=True):
        assert_exact(permuted, plain)


def test_a_vit_with_registers_does_not_see_the_order_of_its_patches(
    randomise: Callable[[nn.Module], nn.Module],
) -> None:
    vit = timm.create_model(
        "vit_tiny_patch16_224",
        img_size=32,
        patch_size=8,
        embed_dim=32,
        depth=2,
        num_heads=4,
        init_values=0.1,
        qk_norm=True,
        reg_tokens=2,
        num_classes=5,
    )
    randomise(vit)
    images = torch.randn(3, 3, 32, 32, dtype=torch.float64)
    order = with_prefix(draw_order((3, 16)), vit.num_prefix_tokens)
    z = vit.norm_pre(vit._pos_embed(vit.patch_embed(images)))
    h = unpermute_rows(vit.blocks(permute_rows(z, order)), order)
    assert_exact(vit.norm(h), vit.forward_features(images))
    # With CLS in front, its row alone is enough, and nothing need be unpermuted.
    assert_close(vit.blocks(permute_rows(z, order))[:, 0], h[:, 0], rtol=0, atol=0)
