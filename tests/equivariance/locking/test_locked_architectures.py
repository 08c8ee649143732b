# SPDX-License-Identifier: Apache-2.0
"""Every architecture: locked, run with the key, cracked, unlocked."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.testing import assert_close

from equivariance import Inner, Secret
from equivariance.locking import (
    crack_file,
    load_locked,
    lock_file,
    read_lock,
    share_recovered,
    unlock_file,
)

OWNER = Secret.from_seed(1)
Case = tuple[nn.Module, Tensor]
SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4}


def torch_encoder(norm_first: bool) -> Case:
    layer = nn.TransformerEncoderLayer(16, 4, 24, 0.0, batch_first=True, norm_first=norm_first)
    model = nn.TransformerEncoder(layer, 2, nn.LayerNorm(16), enable_nested_tensor=False)
    return model, torch.randn(2, 5, 16, dtype=torch.float64)


def hf_vit() -> Case:
    hf = pytest.importorskip("transformers")
    config = hf.ViTConfig(**SMALL, intermediate_size=24, image_size=8, patch_size=4)
    return hf.ViTModel(config), torch.randn(2, 3, 8, 8, dtype=torch.float64)


def hf_bert() -> Case:
    hf = pytest.importorskip("transformers")
    config = hf.BertConfig(**SMALL, intermediate_size=24, vocab_size=32)
    return hf.BertModel(config), torch.arange(10).reshape(2, 5)


def hf_gpt2() -> Case:
    hf = pytest.importorskip("transformers")
    config = hf.GPT2Config(n_embd=16, n_layer=2, n_head=4, vocab_size=32, n_positions=8)
    return hf.GPT2Model(config), torch.arange(10).reshape(2, 5)


CASES: dict[str, tuple[str, Callable[[], Case]]] = {
    "pre-norm": ("torch-encoder", lambda: torch_encoder(True)),
    "post-norm": ("torch-encoder", lambda: torch_encoder(False)),
    "vit": ("hf-vit", hf_vit),
    "bert": ("hf-bert", hf_bert),
    "gpt2": ("hf-gpt2", hf_gpt2),
}


def output(model: nn.Module, x: Tensor) -> Tensor:
    found = model(x)
    result: Tensor = found if isinstance(found, Tensor) else found.last_hidden_state
    return result


@pytest.mark.parametrize("inner", ["headwise", "none"])
@pytest.mark.parametrize("case", CASES)
def test_locked_it_works_with_the_key_only(
    randomise: Callable[[nn.Module], nn.Module], tmp_path: Path, case: str, inner: Inner
) -> None:
    name, make = CASES[case]
    model, x = make()
    randomise(model).eval()
    plain, locked, unlocked = (tmp_path / one for one in ("plain", "locked", "unlocked"))
    save_file(model.state_dict(), plain)
    expected = output(model, x)

    lock_file(plain, locked, OWNER, heads=4, inner=inner)
    lock = read_lock(locked)
    assert (lock.architecture, lock.dim) == (name, 16)
    with load_locked(model, locked, OWNER):
        assert_close(output(model, x), expected, rtol=1e-12, atol=1e-12)
    assert (output(model, x) - expected).abs().max() > 1e-2

    found = crack_file(locked, plain)
    assert share_recovered(found.order, lock.order(OWNER)) == 1
    unlock_file(locked, unlocked, OWNER)
    assert unlocked.read_bytes() == plain.read_bytes()
