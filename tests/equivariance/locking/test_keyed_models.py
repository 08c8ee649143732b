# SPDX-License-Identifier: Apache-2.0
"""A locked model with its key is the plain model: outputs, gradients, fine-tuning."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from timm.models.vision_transformer import checkpoint_filter_fn
from torch import nn
from torch.testing import assert_close

from equivariance import Inner, Secret
from equivariance.locking import (
    Lock,
    LockError,
    Stack,
    column_order,
    load_locked,
    lock_file,
    lock_metadata,
    read_lock,
    unlock_file,
    with_key,
    with_order,
)

OWNER, OTHER = Secret.from_seed(1), Secret.from_seed(2)
STACK = Stack(architecture="timm-vit", dim=16, heads=4, inner="headwise")
MakeVit = Callable[..., nn.Module]


def images(count: int = 2) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(count, 3, 8, 8, dtype=torch.float64, generator=generator)


@pytest.fixture(params=["headwise", "none"])
def locked_file(request: pytest.FixtureRequest, tmp_path: Path, make_vit: MakeVit) -> Path:
    """A locked file of `make_vit()`."""
    inner: Inner = request.param
    plain, locked = tmp_path / "plain.safetensors", tmp_path / "locked.safetensors"
    save_file(make_vit().state_dict(), plain)
    lock_file(plain, locked, OWNER, heads=4, inner=inner)
    return locked


def test_outputs_and_input_gradients_are_the_plain_models(
    locked_file: Path, make_vit: MakeVit
) -> None:
    plain, locked = make_vit(), make_vit()
    x_plain, x_locked = images().requires_grad_(), images().requires_grad_()
    with load_locked(locked, locked_file, OWNER):
        y_plain, y_locked = plain(x_plain), locked(x_locked)
        assert_close(locked.forward_features(x_locked), plain.forward_features(x_plain))
    torch.autograd.backward((y_plain.square().sum(), y_locked.square().sum()))
    assert_close(y_locked, y_plain, rtol=1e-12, atol=1e-12)
    assert_close(x_locked.grad, x_plain.grad, rtol=1e-12, atol=1e-12)
    assert (locked(images()) - y_plain).abs().max() > 1e-2  # the key is detached


@pytest.mark.parametrize("make_optimiser", [torch.optim.SGD, torch.optim.AdamW])
def test_fine_tuning_with_the_key_then_unlocking_is_fine_tuning(
    locked_file: Path, make_vit: MakeVit, make_optimiser: Any
) -> None:
    plain, locked = make_vit(), make_vit()
    load_locked(locked, locked_file, OWNER)
    before = plain.state_dict()["blocks.0.mlp.fc1.weight"].clone()
    for model in (plain, locked):
        options = {"momentum": 0.9} if make_optimiser is torch.optim.SGD else {"eps": 1e-4}
        optimiser = make_optimiser(model.parameters(), lr=1e-3, weight_decay=0.01, **options)
        for _ in range(5):
            optimiser.zero_grad()
            model(images(4)).square().mean().backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
    lock = read_lock(locked_file)
    tuned, back = locked_file.with_name("tuned"), locked_file.with_name("back")
    save_file(locked.state_dict(), tuned, metadata=lock_metadata(lock))
    unlock_file(tuned, back, OWNER)
    assert_close(load_file(back), dict(plain.state_dict()), rtol=1e-12, atol=1e-12)
    assert (plain.state_dict()["blocks.0.mlp.fc1.weight"] - before).abs().max() > 1e-4


def test_the_key_shows_neither_in_the_state_nor_in_a_pickle(
    locked_file: Path, make_vit: MakeVit
) -> None:
    model = make_vit()
    names = list(model.state_dict())
    key = load_locked(model, locked_file, OWNER)
    assert list(model.state_dict()) == names
    assert_close(copy.deepcopy(model)(images()), model(images()), rtol=0, atol=0)
    with pytest.raises(TypeError, match="is not pickled"):
        pickle.dumps(model)
    key.remove()
    pickle.dumps(model)


def test_models_that_do_not_go_with_the_lock_are_refused(make_vit: MakeVit) -> None:
    lock = Lock.made(STACK, OWNER)
    with pytest.raises(LockError, match="the model: is locked with another key"):
        with_key(make_vit(), OTHER, lock)
    with pytest.raises(LockError, match="locked for 4 heads; the model has 2"):
        with_key(make_vit(heads=2), OWNER, lock)
    with pytest.raises(LockError, match="its rule expects 16 where it has 20"):
        with_key(make_vit(dim=20), OWNER, lock)
    with pytest.raises(LockError, match="one stack of blocks is wanted; found are: none"):
        with_key(nn.Linear(2, 2), OWNER, lock)
    model = make_vit()
    with with_key(model, OWNER, lock), pytest.raises(LockError, match="attached already"):
        with_key(model, OWNER, lock)
    with_key(model, OWNER, lock)


def test_files_that_do_not_go_with_the_model_are_refused(
    locked_file: Path, make_vit: MakeVit
) -> None:
    model = make_vit(depth=3)
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(
        LockError, match=r"model:\n  blocks\.2\.norm1\.weight: missing; the model has \[16\]\n"
    ):
        load_locked(model, locked_file, OWNER)
    with pytest.raises(LockError, match=r"locked\.safetensors: is locked with another key"):
        load_locked(make_vit(), locked_file, OTHER)
    assert_close(dict(model.state_dict()), dict(before), rtol=0, atol=0)


def test_positions_can_be_resampled_on_the_way(locked_file: Path, make_vit: MakeVit) -> None:
    plain, locked = make_vit(img_size=16), make_vit(img_size=16)
    state = checkpoint_filter_fn(load_file(locked_file.with_name("plain.safetensors")), plain)
    plain.load_state_dict(state)
    x = torch.randn(2, 3, 16, 16, dtype=torch.float64)
    with load_locked(locked, locked_file, OWNER, convert=checkpoint_filter_fn):
        assert_close(locked(x), plain(x), rtol=1e-12, atol=1e-12)


@pytest.mark.filterwarnings("ignore:.*nested tensors")
def test_a_key_works_where_an_encoder_skips_padding() -> None:
    """In evaluation PyTorch hands its layers nested tensors, without the padding."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 4, 24, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).eval()
    x, padding = torch.randn(3, 5, 16), torch.zeros(3, 5, dtype=torch.bool)
    padding[1, 3:] = padding[2, 1:] = True
    stack = Stack(architecture="torch-encoder", dim=16, heads=4, inner="headwise")
    with torch.no_grad():
        expected = model(x, src_key_padding_mask=padding)
        order = column_order(stack, OWNER)
        locked = copy.deepcopy(model)
        locked.load_state_dict(stack.conjugate(model.state_dict(), order))
        with with_order(locked, order, stack):
            found = locked(x, src_key_padding_mask=padding)
    keep = ~padding
    assert_close(found[keep], expected[keep], rtol=1e-4, atol=1e-5)
    assert (locked(x) - model(x)).abs().max() > 0.1


def test_features_under_an_unknown_name_are_refused(make_vit: MakeVit) -> None:
    model = make_vit()
    with (
        with_order(model, torch.arange(16), STACK),
        pytest.raises(LockError, match="the first block takes tokens: which are the features"),
    ):
        model.blocks[0](tokens=images())
