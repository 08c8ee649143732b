# SPDX-License-Identifier: Apache-2.0
"""A client's states on its disk: exact, whole or not at all, the last three kept."""

from pathlib import Path

import pytest
import torch

from clients import state as state_module
from clients.state import PARTS, ClientState, StateError, StateFolder


def make(round: int) -> ClientState:
    tensors = {
        part: {f"blocks.0/w:{part}": torch.full((2, 3), float(10 * round + index)).T}
        for index, part in enumerate(PARTS)
    }
    return ClientState(tensors, finished=round, begun=round)


def names(folder: StateFolder) -> list[str]:
    return sorted(path.name for path in folder.path.iterdir())


@pytest.fixture
def folder(tmp_path: Path) -> StateFolder:
    return StateFolder(tmp_path / "run" / "client-000")


def test_a_saved_state_is_loaded_exactly(folder: StateFolder) -> None:
    saved = make(1)
    saved.tensors["tail-moments"] = {}
    folder.save(saved)
    loaded = folder.load(1)
    assert (loaded.finished, loaded.begun) == (1, 1)
    assert loaded.tensors.keys() == saved.tensors.keys()
    for part in PARTS:
        assert loaded.tensors[part].keys() == saved.tensors[part].keys()
        for name, tensor in saved.tensors[part].items():
            assert torch.equal(loaded.tensors[part][name], tensor)


def test_the_last_three_rounds_are_kept_and_no_partial_file(folder: StateFolder) -> None:
    for round in (1, 2, 9, 10, 11):
        folder.save(make(round))
    assert names(folder) == [f"round-{round:06d}.safetensors" for round in (9, 10, 11)]


def test_a_broken_write_leaves_the_old_state(
    folder: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.save(make(1))

    def half(tensors: object, path: Path, metadata: object) -> None:
        Path(path).write_bytes(b"half a file")
        raise OSError("disk full")

    monkeypatch.setattr(state_module, "save_file", half)
    for round in (1, 2):
        with pytest.raises(OSError, match="disk full"):
            folder.save(make(round))
    assert torch.equal(
        folder.load(1).tensors["edge"]["blocks.0/w:edge"],
        make(1).tensors["edge"]["blocks.0/w:edge"],
    )
    with pytest.raises(StateError):
        folder.load(2)
    (folder.path / "round-000002.partial-1").write_bytes(b"of a process that was killed")
    folder.drop_after(0)
    assert names(folder) == []
    monkeypatch.undo()
    folder.save(make(2))
    assert folder.load(2).finished == 2


@pytest.mark.parametrize("content", [None, b"", b"half a file"])
def test_an_unreadable_state_names_its_path(folder: StateFolder, content: bytes | None) -> None:
    path = folder.path / "round-000004.safetensors"
    if content is not None:
        folder.path.mkdir(parents=True)
        path.write_bytes(content)
    with pytest.raises(StateError, match="state of round 4 cannot be read from") as caught:
        folder.load(4)
    assert str(path) in str(caught.value)
    assert "state-dir must be" in str(caught.value)


def test_later_rounds_are_dropped_and_no_others(folder: StateFolder) -> None:
    folder.drop_after(0)  # no folder yet
    for round in (1, 2, 3):
        folder.save(make(round))
    folder.drop_after(1)
    assert names(folder) == ["round-000001.safetensors"]
    folder.drop_after(1)
    assert folder.load(1).finished == 1
