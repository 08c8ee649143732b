# SPDX-License-Identifier: Apache-2.0
"""Image experiments at their smallest: equalities hold, and what should break is seen to break."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from equivariance import conjugate_
from equivariance.experiments import EXPERIMENTS, ExperimentError, failures, vit_adapter
from equivariance.experiments.models.vit import ViTOptions, build_vit
from equivariance.experiments.subject import Subject
from equivariance.experiments.vit_test_time import ViTTestTimeOptions, run

TINY = {"data": "synthetic:20", "test-images": 20, "image-size": 16, "dim": 16, "batch-size": 5}
TINY |= {"depth": 2, "heads": 2}


def ran(name: str, **options: Any) -> pd.DataFrame:
    values = TINY | {key.replace("_", "-"): value for key, value in options.items()}
    return EXPERIMENTS[name].run_with(values)


def claimed(table: pd.DataFrame, claim: str) -> pd.DataFrame:
    return table[table["claim"] == claim]


def test_a_permuted_vit_predicts_as_the_plain_one() -> None:
    table = ran("vit-test-time", steps=3, keys=2)
    equal = claimed(table, "equal")
    assert equal["holds"].all()
    assert set(equal["case"]) == {"row", "column", "row and column"}
    assert equal[equal["quantity"] == "outputs"]["max_rel"].max() < 1e-12
    assert claimed(table, "different")["holds"].all()
    assert table[table["case"] == "column"]["paper"].tolist()[0] == 97.65


def test_a_model_that_is_not_conjugated_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Subject, "conjugated", lambda self, order: self.copy())
    broken = failures(ran("vit-test-time", steps=0, keys=1))
    assert {"column", "row and column", "column model, plain inputs"} == set(
        broken[broken["quantity"] == "outputs"]["case"]
    )


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_permuted_training_is_the_plain_training(optimizer: str) -> None:
    table = ran("vit-training", steps=6, optimizer=optimizer, lr=1e-2)
    equal = claimed(table, "equal")
    assert equal["holds"].all()
    assert set(equal["quantity"]) == {"gradients", "weights", "accuracy %"}
    assert equal[equal["quantity"] == "weights"]["max_rel"].max() < 1e-9


def test_in_single_precision_weights_are_only_measured() -> None:
    table = ran("vit-training", steps=2, dtype="float32")
    assert claimed(table, "equal")["holds"].all()
    assert "weights" not in set(table["quantity"])
    assert "weights, largest difference" in set(table["quantity"])


def test_dense_prediction_with_injectors_and_extractors() -> None:
    table = ran("vit-adapter", steps=2, stages=2)
    assert failures(table).empty
    equal = claimed(table, "equal")
    assert equal[equal["quantity"].isin(["outputs", "gradients"])]["max_rel"].max() < 1e-12
    assert set(table["quantity"]) >= {"mIoU %", "aAcc %", "mAcc %"}
    control = table[table["case"] == "row, extractor with convolution"]
    assert control["max_rel"].item() > 1e-3


@pytest.mark.parametrize("inner", ["headwise", "none"])
def test_dense_prediction_heeds_the_group(monkeypatch: pytest.MonkeyPatch, inner: str) -> None:
    seen: list[tuple[str, bool]] = []

    def watch(module: nn.Module, order: Tensor, *, inner: Any, **options: Any) -> None:
        heads = order.reshape(2, -1) // (order.numel() // 2)
        seen.append((inner, bool((heads == heads[:, :1]).all())))
        conjugate_(module, order, inner=inner, **options)

    monkeypatch.setattr(vit_adapter, "conjugate_", watch)
    assert failures(ran("vit-adapter", steps=1, stages=1, inner=inner)).empty
    assert seen == [(inner, inner == "headwise")] * 2


def test_with_the_key_fine_tuning_is_the_normal_one() -> None:
    options = {"steps": 3, "pretrain_steps": 3, "train_images": 10, "margin": 1}
    table = ran("authorization", **options)
    with_key = table[table["case"] == "with key"]
    assert with_key["holds"].all()
    assert with_key["max_rel"].max() < 1e-9
    assert set(table["case"]) == {"normal", "with key", "without key", "from scratch"}


def test_weights_of_a_file_and_a_probe(tmp_path: Path) -> None:
    sizes = {"model": "test_vit", "image_size": 32, "dtype": "float32"}
    source = build_vit(ViTOptions.of(**sizes, seed=5), 7)
    save_file(source.model.state_dict(), tmp_path / "vit.safetensors")
    found = build_vit(ViTOptions.of(**sizes, weights=str(tmp_path / "vit.safetensors")), 3)
    assert torch.equal(found.model.pos_embed, source.model.pos_embed)
    assert found.model.head.out_features == 3
    probed = build_vit(ViTOptions.of(**sizes), 10)
    before = probed.weights()["blocks.0.attn.qkv.weight"].clone()
    table = run(
        ViTTestTimeOptions.of(**sizes, data="synthetic:20", test_images=10, fit="probe", keys=1)
    )
    assert claimed(table, "equal")["holds"].all()
    assert torch.equal(probed.weights()["blocks.0.attn.qkv.weight"], before)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dim": 15}, "dim = 15: must be a multiple of 2"),
        ({"image_size": 17}, "image-size = 17: must be a multiple of 8"),
        ({"model": "resnet18"}, "model = resnet18"),
        ({"model": "vit_pwee_patch16_reg1_gap_256"}, r"in_norm\.weight \[256\]: no rule"),
        ({"model": "vit_nowhere"}, "model = vit_nowhere: timm cannot build it"),
        ({"weights": "none.safetensors"}, "cannot be loaded"),
    ],
)
def test_models_that_cannot_be_built(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ExperimentError, match=message):
        ran("vit-test-time", **options)


def test_the_random_generator_is_left_alone() -> None:
    before = torch.random.get_rng_state()
    ran("vit-adapter", steps=1, stages=1)
    assert torch.equal(torch.random.get_rng_state(), before)
