# SPDX-License-Identifier: Apache-2.0
"""What is attacked is what was sent: by the same code, the same defence object, the same keys."""

import shutil
from pathlib import Path

import pytest
import torch
from federation import federate
from finished import ATTACKED, finished_run, write_checkpoint
from torch import Tensor

from attacks import AttackError, Scene
from attacks.threat import BLACK_BOX, KNOWN_EDGE, TOLD_ORDER
from clients.defences import DEFENCES
from clients.defences.gn import GaussianNoise
from clients.protocol import wire_of
from config import parse_run_config
from equivariance import invert, permute_rows
from reports import RunFolder
from server_app.checkpoint import save_checkpoint
from server_app.checks import RULES
from split import decode


class CountingNoise(GaussianNoise):
    """Gaussian noise that remembers how often each object was asked."""

    name = "counting"
    calls: dict[int, int]

    def apply(self, grid_BCHW: Tensor, generator: torch.Generator, *, cell: int) -> Tensor:
        CountingNoise.calls[id(self)] = CountingNoise.calls.get(id(self), 0) + 1
        return super().apply(grid_BCHW, generator, cell=cell)


def trained_run(tmp_path: Path, **keys: object) -> tuple[RunFolder, list[Tensor]]:
    """A run of two clients trained in this process, and all smashed data of its evaluations."""
    places = {"runs-dir": str(tmp_path / "runs"), "state-dir": str(tmp_path / "state")}
    config = parse_run_config({**ATTACKED, **places, **keys}, RULES)
    federation = federate(config, clients=2).train()
    run = RunFolder.create(config.runs_dir, config.run_name, config.model_dump(by_alias=True))
    run.add_facts({"clients": 2})
    trunk = federation.trunk.step.state()
    save_checkpoint(run, federation.strategy.state, trunk, keep=1)
    sent = [
        decode(wire_of(content))
        for _, what, content in federation.grid.traffic
        if what.startswith("up evaluate") and "wire" in content.array_records
    ]
    return run, sent


@pytest.mark.parametrize("permute", ["none", "row", "row+column"])
def test_smashed_data_are_those_of_the_evaluation(tmp_path: Path, permute: str) -> None:
    run, sent = trained_run(tmp_path, permute=permute, defences="gn:0.5,bs:0.5")
    smashed = Scene(run, images=10_000).view(BLACK_BOX).smashed
    assert len(sent) > 2
    test_batches = [tokens for tokens in sent if _contains(smashed, tokens)]
    assert sum(map(len, test_batches)) == len(smashed)


def _contains(smashed: Tensor, tokens: Tensor) -> bool:
    size = len(tokens)
    return any(torch.equal(smashed[i : i + size], tokens) for i in range(len(smashed) - size + 1))


def test_one_defence_object_serves_training_evaluation_and_attack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DEFENCES, "counting", CountingNoise)
    monkeypatch.setattr(CountingNoise, "calls", {}, raising=False)
    run, _ = trained_run(tmp_path, defences="counting:0.1")
    (trained,) = CountingNoise.calls.values()
    scene = Scene(run, images=32)
    view = scene.view(KNOWN_EDGE)
    victims = sum(CountingNoise.calls.values())
    view.queries(scene.auxiliary.images[:4], 0)
    assert len(CountingNoise.calls) == 1
    assert id(view.defence.defences[0]) in CountingNoise.calls
    assert 0 < trained < victims < sum(CountingNoise.calls.values())


def test_told_orders_undo_the_permutation(tmp_path: Path) -> None:
    keys = {"permute-cls": True, "return_": "all"}
    permuted = Scene(finished_run(tmp_path / "a", **keys), images=20).view(TOLD_ORDER)
    plain = Scene(finished_run(tmp_path / "b", permute="none"), images=20).view(TOLD_ORDER)
    back = permute_rows(permuted.smashed, invert(permuted.orders))
    assert torch.equal(back, plain.smashed)
    assert not torch.equal(permuted.smashed, plain.smashed)
    assert torch.equal(plain.orders, torch.arange(17).expand(20, -1))


@pytest.mark.parametrize(("rotation", "shared"), [("sample", False), ("batch", False),
                                                  ("round", True), ("fixed", True)])  # fmt: skip
def test_queries_are_permuted_as_the_rotation_says(
    tmp_path: Path, rotation: str, shared: bool
) -> None:
    """A lasting key permutes known images as it permutes the victims; a fresh one does not."""
    scene = Scene(finished_run(tmp_path, rotation=rotation), images=8)
    view = scene.view(TOLD_ORDER)
    image = scene.auxiliary.images[:1]
    plain = Scene(finished_run(tmp_path / "plain", permute="none"), images=8)
    tokens = plain.view(BLACK_BOX).queries(image, 0)
    as_victim = permute_rows(tokens, view.orders[:1])
    assert torch.equal(view.queries(image, 0), as_victim) == shared
    assert (scene.client >= 0) == shared


def test_victims_are_a_fixed_choice_of_whole_batches(tmp_path: Path) -> None:
    run = finished_run(tmp_path)
    few, many = Scene(run, images=5).traffic, Scene(run, images=50).traffic
    assert torch.equal(few[0], many[0][:5])
    assert torch.equal(few[1].images, many[1].images[:5])


def test_what_cannot_be_attacked_is_said(tmp_path: Path) -> None:
    run = finished_run(tmp_path / "ok")
    with pytest.raises(AttackError, match=r"client = 2: must be 0 \.\. 1"):
        Scene(run, client=2)
    weights = run.latest_checkpoint() / "clients.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    with pytest.raises(AttackError, match=r"clients\.safetensors: does not hold the run's edge"):
        Scene(run)
    weights.unlink()
    with pytest.raises(AttackError, match=r"clients\.safetensors: missing"):
        Scene(run)
    shutil.rmtree(run.checkpoints_path)
    with pytest.raises(AttackError, match="no checkpoint"):
        Scene(run)
    with pytest.raises(AttackError, match="auxiliary = 0: it leaves 0 images"):
        Scene(finished_run(tmp_path / "no-auxiliary", auxiliary=0.0))
    with pytest.raises(AttackError, match='client-weights = "private"'):
        Scene(finished_run(tmp_path / "private", client_weights="private"))


def test_a_frozen_edge_is_the_first_one(tmp_path: Path) -> None:
    frozen = Scene(finished_run(tmp_path / "frozen", client_weights="frozen"), images=8)
    averaged = Scene(finished_run(tmp_path / "averaged"), images=8)
    assert torch.equal(frozen.traffic[0], averaged.traffic[0])


def test_the_latest_checkpoint_is_attacked(tmp_path: Path) -> None:
    run = finished_run(tmp_path)
    config = parse_run_config(run.config(), RULES)
    write_checkpoint(run, config, round=2)
    assert Scene(run).round == 2
