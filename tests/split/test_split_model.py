# SPDX-License-Identifier: Apache-2.0
"""Models by name: overrides, first weights, errors that say what is allowed, and the cut."""

from dataclasses import replace
from pathlib import Path

import pytest
import timm
import torch
from federation import TINY
from safetensors.torch import save_file
from torch import Tensor

from config import RunConfig
from split import ModelError, ModelSpec, build_split, build_vit, check_model, cut_vit, empty_split

SPEC = ModelSpec(name="vit_tiny_patch16_224", image_size=16, patch_size=4, dim=16, depth=3, heads=2)
IMAGES = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))
DINO = replace(SPEC, name="vit_small_patch14_reg4_dinov2", image_size=28, patch_size=7, pool="mean")


def test_overrides_rule_and_zero_keeps_the_models_own() -> None:
    vit = build_vit(SPEC)
    assert (vit.embed_dim, len(vit.blocks), vit.blocks[0].attn.num_heads) == (16, 3, 2)
    assert vit.patch_embed.grid_size == (4, 4)
    assert vit.head.out_features == 40
    with torch.device("meta"):
        own = build_vit(ModelSpec(name="vit_tiny_patch16_224", image_size=32))
    assert (own.embed_dim, len(own.blocks), own.blocks[0].attn.num_heads) == (192, 12, 3)
    assert own.patch_embed.grid_size == (2, 2)


def test_a_spec_follows_the_run_config() -> None:
    config = RunConfig.model_validate(
        {**TINY, "pool": "mean", "edge-position": "none", "drop-path": 0.25, "seed": 7}
    )
    assert ModelSpec.of(config) == ModelSpec(
        name="vit_tiny_patch16_224",
        image_size=16,
        patch_size=4,
        dim=16,
        depth=2,
        heads=2,
        pool="mean",
        position=False,
        drop_path=0.25,
        seed=7,
    )


def test_first_weights_follow_the_seed_alone() -> None:
    torch.manual_seed(1)
    one = build_split(SPEC, 1).state_dict()
    torch.manual_seed(2)
    again, other = build_split(SPEC, 2).state_dict(), build_split(replace(SPEC, seed=1), 1)
    assert one.keys() == again.keys()
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert not torch.equal(one["head.weight"], other.state_dict()["head.weight"])


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"name": "vit_tny"}, "'vit_tny' is not a model of timm; try timm.list_models"),
        ({"name": "resnet18"}, "timm cannot build 'resnet18' with .*'patch_size': 4.*: ResNet"),
        ({"name": "deit_tiny_distilled_patch16_224"}, "is a VisionTransformerDistilled; allowed"),
        ({"heads": 3}, "timm cannot build 'vit_tiny_patch16_224' with .*'num_heads': 3"),
        ({"weights": "nowhere.safetensors"}, "weights 'nowhere.safetensors': no such file"),
    ],
    ids=["unknown", "resnet", "distilled", "heads", "weights"],
)
def test_a_model_that_cannot_be_built_says_why(changes: dict[str, object], text: str) -> None:
    with pytest.raises(ModelError, match=text):
        build_vit(replace(SPEC, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("cut", [-1, 3])
def test_a_cut_outside_the_stack(cut: int) -> None:
    with pytest.raises(ModelError, match=rf"cut = {cut}: must be 0 \.\. 2"):
        build_split(SPEC, cut)


def test_cls_pooling_needs_a_cls_token() -> None:
    spec = replace(SPEC, name="vit_base_patch16_siglip_gap_224", pool="cls")
    with pytest.raises(ModelError, match=r"timm cannot build .* needs the class token"):
        build_split(spec, 0)
    vit = build_vit(replace(spec, pool="mean"))
    with pytest.raises(ModelError, match='no CLS token; allowed is "mean"'):
        cut_vit(vit, cut=0, pool="cls")


def test_check_model_collects_what_only_timm_can_tell() -> None:
    values = {**TINY, "patch-size": 0, "depth": 0, "cut": 12, "image-size": 40, "weights": "none"}
    found = {p.key: p.message for p in check_model(RunConfig.model_validate(values))}
    assert found == {
        "weights": 'no such file; allowed is "", "hub" or a file',
        "image-size": "must be a multiple of the patch, 16",
        "cut": "must be 0 .. 11 (depth of vit_tiny_patch16_224)",
    }
    unknown = RunConfig.model_validate({**TINY, "model": "vit_tny"})
    assert [problem.key for problem in check_model(unknown)] == ["model"]
    assert not list(check_model(RunConfig.model_validate(TINY)))


def saved_vit(path: Path, outputs: int, size: int = 32) -> dict[str, Tensor]:
    """A small timm state dict at another image size, in ``path``."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(11)
        vit = timm.create_model(
            SPEC.name,
            img_size=size,
            patch_size=4,
            embed_dim=16,
            depth=3,
            num_heads=2,
            num_classes=outputs,
        )
        torch.nn.init.normal_(vit.pos_embed)
    state = vit.state_dict()
    if path.suffix == ".safetensors":
        save_file(state, path)
    else:
        torch.save(state, path)
    return dict(state)


@pytest.mark.parametrize("name", ["w.safetensors", "w.pth"])
def test_weights_of_a_file_are_loaded_and_positions_resampled(tmp_path: Path, name: str) -> None:
    saved = saved_vit(tmp_path / name, outputs=10)
    loaded = build_vit(replace(SPEC, weights=str(tmp_path / name))).state_dict()
    for key, tensor in loaded.items():
        if key not in ("pos_embed", "head.weight", "head.bias"):
            assert torch.equal(tensor, saved[key]), key
    assert loaded["head.weight"].shape == (40, 16)
    assert (saved["pos_embed"].shape[1], loaded["pos_embed"].shape[1]) == (65, 17)
    assert torch.equal(loaded["pos_embed"][:, 0], saved["pos_embed"][:, 0])
    # Bicubic with antialiasing of one grid to a coarser one keeps the mean about.
    old, new = saved["pos_embed"][0, 1:], loaded["pos_embed"][0, 1:]
    grid = old.T.reshape(1, 16, 8, 8)
    resized = torch.nn.functional.interpolate(grid, (4, 4), mode="bicubic", antialias=True)
    torch.testing.assert_close(new.T.reshape(1, 16, 4, 4), resized)


def test_weights_of_another_width_are_refused(tmp_path: Path) -> None:
    saved_vit(tmp_path / "w.safetensors", outputs=10)
    with pytest.raises(ModelError, match="timm cannot build"):
        build_vit(replace(SPEC, dim=32, weights=str(tmp_path / "w.safetensors")))


def test_mean_pooling_is_timms_with_its_norm_after_pooling() -> None:
    spec = replace(SPEC, pool="mean")
    model = build_split(spec, 1)
    oracle = timm.create_model(
        spec.name,
        img_size=16,
        patch_size=4,
        embed_dim=16,
        depth=3,
        num_heads=2,
        num_classes=40,
        global_pool="avg",
        fc_norm=True,
    ).eval()
    renamed = {
        f"fc_{name}" if name.startswith("norm.") else name: tensor
        for name, tensor in model.state_dict().items()
    }
    oracle.load_state_dict(renamed)
    torch.testing.assert_close(model.forward(IMAGES), oracle(IMAGES))


@pytest.mark.parametrize("cut", [0, 2])
def test_registers_and_layer_scale_survive_the_cut(cut: int) -> None:
    for pool in ("mean", "cls"):
        spec = replace(DINO, pool=pool)
        model = build_split(spec, cut)
        assert model.trunk.prefix == model.edge.prefix == model.tail.prefix == 5
        assert model.trunk.tokens == 5 + 16
        assert any("ls1.gamma" in name for name in model.trunk.state_dict())
        images = torch.randn(2, 3, 28, 28, generator=torch.Generator().manual_seed(0))
        vit = build_vit(spec)
        assert model.state_dict().keys() == vit.state_dict().keys()
        hidden = vit.blocks(vit.norm_pre(vit._pos_embed(vit.patch_embed(images))))
        torch.testing.assert_close(model.trunk(model.edge(images)), hidden)
        if pool == "cls":
            torch.testing.assert_close(model.forward(images), vit(images))
        else:
            pooled = vit.norm(hidden[:, 5:].mean(dim=1))
            torch.testing.assert_close(model.forward(images), vit.head(pooled))


def test_without_positions_patches_have_no_place() -> None:
    edge = build_split(replace(SPEC, position=False), 0).edge
    tokens = edge(torch.ones(1, 3, 16, 16))
    torch.testing.assert_close(tokens[:, 1:], tokens[:, 1:2].expand(1, 16, 16))
    placed = build_split(SPEC, 0).edge(torch.ones(1, 3, 16, 16))
    assert not torch.allclose(placed[:, 1:], placed[:, 1:2].expand(1, 16, 16))


@pytest.mark.parametrize("cut", [0, 1, 2])
def test_empty_parts_have_the_names_and_shapes_of_full_ones(cut: int) -> None:
    full, empty = build_split(SPEC, cut).state_dict(), empty_split(SPEC, cut).state_dict()
    assert {n: t.shape for n, t in full.items()} == {n: t.shape for n, t in empty.items()}
    assert all(tensor.is_meta for tensor in empty.values())


def test_ones_own_trained_model_comes_back_with_its_head(tmp_path: Path) -> None:
    trained = build_split(replace(SPEC, seed=5), 0)
    save_file(trained.state_dict(), tmp_path / "own.safetensors")
    again = build_split(replace(SPEC, weights=str(tmp_path / "own.safetensors")), 1)
    assert torch.equal(again.forward(IMAGES), trained.forward(IMAGES))


def test_a_broken_weights_file_says_so(tmp_path: Path) -> None:
    path = tmp_path / "broken.safetensors"
    path.write_bytes(b"no tensors")
    with pytest.raises(ModelError, match=r"broken\.safetensors.*cannot be read"):
        build_vit(replace(SPEC, weights=str(path)))
