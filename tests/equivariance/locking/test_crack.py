# SPDX-License-Identifier: Apache-2.0
"""The attack finds the key of a model whose plain weights, or similar ones, are known."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.testing import assert_close

from equivariance import Inner, Secret, check_headwise
from equivariance.locking import (
    LockError,
    Stack,
    column_order,
    crack,
    crack_file,
    lock_file,
    noisy_copy,
    recovery_by_noise,
    share_recovered,
)
from equivariance.locking.features import column_axes, standardised

OWNER = Secret.from_seed(1)
MakeVit = Callable[..., nn.Module]


def stack_of(dim: int, heads: int, inner: Inner = "headwise") -> Stack:
    return Stack(architecture="timm-vit", dim=dim, heads=heads, inner=inner)


def blocks_of(model: nn.Module) -> dict[str, Tensor]:
    return {k: v.float() for k, v in model.state_dict().items() if k.startswith("blocks.")}


@settings(deadline=None, max_examples=15, derandomize=True)
@given(
    heads=st.integers(1, 4),
    size=st.integers(2, 6),
    inner=st.sampled_from(["headwise", "none"]),
    level=st.sampled_from([0.0, 0.25]),
    seed=st.integers(0, 1000),
)
def test_the_key_is_found_in_full(
    make_vit: MakeVit, heads: int, size: int, inner: Inner, level: float, seed: int
) -> None:
    stack = stack_of(heads * size, heads, inner)
    plain = blocks_of(make_vit(heads * size, heads))
    order = column_order(stack, Secret.from_seed(seed))
    found = crack(stack.conjugate(plain, order), noisy_copy(plain, level, seed=seed), stack)
    assert_close(found.order, order, rtol=0, atol=0)
    assert found.compared == len(plain)
    assert found.agreement == 1
    assert found.residual == pytest.approx(level / (1 + level**2) ** 0.5, abs=0.06)


@pytest.mark.parametrize("inner", ["headwise", "none"])
def test_noise_hides_the_key_little_by_little(make_vit: MakeVit, inner: Inner) -> None:
    plain = blocks_of(make_vit(32, 4, 1))
    rows = list(recovery_by_noise(plain, stack_of(32, 4, inner), OWNER, [0, 12, 1000]))
    exact, noisy, blind = (row["recovered"] for row in rows)
    assert exact == 1
    assert 0.2 < noisy < 1
    assert blind < 0.2
    assert all(row["nearest"] <= row["recovered"] + 0.1 for row in rows)
    assert rows[2]["agreement"] < 0.3
    assert rows[2]["residual"] == pytest.approx(2**0.5, abs=0.15)


def test_an_estimate_keeps_heads_together_however_wrong(make_vit: MakeVit) -> None:
    stack, plain = stack_of(16, 4), blocks_of(make_vit())
    found = crack(plain, noisy_copy(plain, 100.0, seed=3), stack)
    check_headwise(found.order, 4)


def test_attention_weights_help_where_the_rest_is_noise(make_vit: MakeVit) -> None:
    """Of the parameters with one permuted axis a few are exact; the second stage uses the rest."""
    stack, plain = stack_of(32, 4), blocks_of(make_vit(32, 4, 1))
    plain = {k: v for k, v in plain.items() if "mlp" not in k and "qkv.bias" not in k}
    order = column_order(stack, OWNER)
    locked = stack.conjugate(plain, order)
    noisy = noisy_copy(plain, 0.7, seed=0)
    without = {k: v for k, v in noisy.items() if "attn" not in k or "bias" in k}
    first = share_recovered(crack(locked, without, stack).order, order)
    both = share_recovered(crack(locked, noisy, stack).order, order)
    assert first < 1
    assert both == 1


def test_a_model_of_other_origin_does_not_help(make_vit: MakeVit) -> None:
    stack, plain = stack_of(32, 4), blocks_of(make_vit(32, 4))
    order = column_order(stack, OWNER)
    other = {name: torch.randn_like(value) for name, value in plain.items()}
    found = crack(stack.conjugate(plain, order), other, stack)
    assert share_recovered(found.order, order) < 0.25
    assert found.agreement < 0.25
    assert not found.related
    assert found.residual > 1


def test_a_fine_tuned_copy_is_enough(make_vit: MakeVit) -> None:
    model = make_vit()
    plain = blocks_of(model)
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(10):
        optimiser.zero_grad()
        model(torch.randn(4, 3, 8, 8, dtype=torch.float64)).square().mean().backward()
        optimiser.step()
    stack = stack_of(16, 4)
    order = column_order(stack, OWNER)
    found = crack(stack.conjugate(plain, order), blocks_of(model), stack)
    assert found.residual > 0.01
    assert_close(found.order, order, rtol=0, atol=0)


def test_names_before_the_block_and_further_parameters_do_not_matter(make_vit: MakeVit) -> None:
    stack, plain = stack_of(16, 4), blocks_of(make_vit())
    order = column_order(stack, OWNER)
    public = {f"backbone.{name}": value for name, value in plain.items()}
    del public["backbone.blocks.0.norm1.weight"]
    found = crack(stack.conjugate(plain, order), public | {"x": torch.ones(1)}, stack)
    assert_close(found.order, order, rtol=0, atol=0)
    assert found.compared == len(plain) - 1


def test_models_that_cannot_be_compared_are_refused(make_vit: MakeVit) -> None:
    plain = blocks_of(make_vit())
    wide = blocks_of(make_vit(mlp_ratio=2.0))
    with pytest.raises(
        LockError, match=r"different shape:\n  blocks\.0\.mlp\.fc1\.weight"
    ) as error:
        crack(plain, wide, stack_of(16, 4))
    assert len(str(error.value).splitlines()) == 7
    other = {name.replace("blocks.", "blocks.7"): value for name, value in plain.items()}
    with pytest.raises(LockError, match="in common: none"):
        crack(plain, other, stack_of(16, 4))


def test_without_entries_by_column_nothing_is_claimed(make_vit: MakeVit) -> None:
    """Attention weights alone say nothing on the first stage; norms of all ones neither."""
    stack, plain = stack_of(16, 4), blocks_of(make_vit())
    locked = stack.conjugate(plain, column_order(stack, OWNER))
    squares = {k: v for k, v in plain.items() if k.endswith(("qkv.weight", "proj.weight"))}
    ones = {k: torch.ones_like(v) for k, v in plain.items() if "norm" in k}
    for reference in (squares, ones):
        found = crack({k: locked[k] for k in reference}, reference, stack)
        assert math.isnan(found.agreement)
        assert not found.related
    assert crack(locked, plain, stack).related


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_entries_that_are_not_finite_are_named(make_vit: MakeVit, value: float) -> None:
    plain = blocks_of(make_vit())
    wild = plain | {"blocks.0.norm1.bias": torch.full((16,), value)}
    with pytest.raises(LockError, match=r"not finite:\n  reference blocks\.0\.norm1\.bias"):
        crack(plain, wild, stack_of(16, 4))
    with pytest.raises(LockError, match=r"not finite:\n  locked blocks\.0\.norm1\.bias"):
        crack(wild, plain, stack_of(16, 4))


def test_features_of_a_parameter_move_as_the_key_says() -> None:
    qkv = torch.arange(2 * 3 * 4).reshape(6, 4) % 7
    columns = column_axes(qkv, [0], 2)
    assert columns.tolist() == [
        [*qkv[0].tolist(), *qkv[2].tolist(), *qkv[4].tolist()],
        [*qkv[1].tolist(), *qkv[3].tolist(), *qkv[5].tolist()],
    ]
    assert_close(column_axes(qkv, [1], 4), qkv.T)
    assert not standardised(torch.full((7,), 0.1)).any()
    assert float(standardised(qkv).square().mean()) == pytest.approx(1)


def write(path: Path, state: Mapping[str, Tensor]) -> Path:
    save_file(dict(state), path)
    return path


def test_the_attack_writes_the_original_file_and_the_permutation(
    model_file: Path, tmp_path: Path
) -> None:
    locked, unlocked, order = (tmp_path / name for name in ("locked", "unlocked", "order"))
    lock = lock_file(model_file, locked, OWNER, heads=4)
    crack_file(locked, model_file, unlocked=unlocked, order=order)
    assert unlocked.read_bytes() == model_file.read_bytes()
    assert_close(load_file(order), {"order": column_order(lock, OWNER)}, rtol=0, atol=0)


def test_files_that_cannot_be_compared_are_refused(model_file: Path, tmp_path: Path) -> None:
    locked, out = tmp_path / "locked", tmp_path / "out"
    lock_file(model_file, locked, OWNER, heads=4)
    with pytest.raises(LockError, match=r"vit\.safetensors: is not locked"):
        crack_file(model_file, model_file, unlocked=out)
    with pytest.raises(LockError, match="locked itself; the reference must be a plain model"):
        crack_file(locked, locked, unlocked=out)
    foreign = write(tmp_path / "foreign", {"x": torch.ones(1)})
    with pytest.raises(LockError, match=r"foreign: .*one stack of blocks is wanted"):
        crack_file(locked, foreign, unlocked=out)
    assert not out.exists()
    out.write_text("mine")
    with pytest.raises(LockError, match="out: exists"):
        crack_file(locked, model_file, order=out)
    assert out.read_text() == "mine"
