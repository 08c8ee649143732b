# SPDX-License-Identifier: Apache-2.0
"""``lock``, ``unlock``, ``rekey`` and ``crack``: from key files to model files, and refusals."""

import os
import signal
import stat
from io import BufferedReader
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from timm.models.vision_transformer import VisionTransformer
from typer.testing import CliRunner, Result

from equivariance import Secret
from equivariance.locking.tensor_file import TensorEntry, TensorFile
from server_app.cli import app


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with ``vit.safetensors``, ``own.key`` and ``other.key``."""
    model = VisionTransformer(
        img_size=8, patch_size=4, embed_dim=16, num_heads=4, depth=1, num_classes=2
    )
    save_file(model.state_dict(), tmp_path / "vit.safetensors", metadata={"num_heads": "4"})
    Secret.from_seed(1).write(tmp_path / "own.key")
    Secret.from_seed(2).write(tmp_path / "other.key")
    return tmp_path


def test_a_model_is_locked_rekeyed_unlocked_beside_itself(folder: Path) -> None:
    model = folder / "vit.safetensors"
    result = invoke("lock", model, "--key", folder / "own.key")
    assert result.exit_code == 0
    assert "timm-vit, 16 features, 4 heads, headwise" in result.output
    keys = ("--key", folder / "own.key", "--new-key", folder / "other.key")
    assert invoke("rekey", folder / "vit.locked.safetensors", *keys).exit_code == 0
    rekeyed = folder / "vit.rekeyed.safetensors"
    assert invoke("unlock", rekeyed, "--key", folder / "other.key").exit_code == 0
    assert (folder / "vit.unlocked.safetensors").read_bytes() == model.read_bytes()


def test_options_reach_the_library(folder: Path) -> None:
    model, out = folder / "vit.safetensors", folder / "out"
    options = ("--key", folder / "own.key", "--out", out, "--architecture", "timm-vit")
    assert invoke("lock", model, *options, "--inner", "none").exit_code == 0
    result = invoke("lock", model, *options, "--heads", 4, "--force")
    assert result.exit_code == 0
    assert "4 heads, headwise" in result.output


def test_crack_reports_and_writes(folder: Path) -> None:
    model, locked, out = (folder / name for name in ("vit.safetensors", "locked", "out"))
    invoke("lock", model, "--key", folder / "own.key", "--out", locked)
    result = invoke("crack", locked, "--reference", model)
    assert result.exit_code == 0
    assert "agree on 100.0% of the columns" in result.output
    assert "share of the key" not in result.output
    options = ("--key", folder / "own.key", "--out", out, "--order-out", folder / "order")
    result = invoke("crack", locked, "--reference", model, *options)
    assert "share of the key recovered  100.0%" in result.output
    assert out.read_bytes() == model.read_bytes()
    assert sorted(load_file(folder / "order")["order"].tolist()) == list(range(16))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("lock vit --key none.key", "none.key: cannot be read"),
        ("lock vit --key own.key --heads 3", "heads 3: must divide the 16 features"),
        ("lock vit --key own.key --heads 2", "heads 2: num_heads of its metadata is 4; one of"),
        ("lock vit --key own.key --out . --force", "is no regular file; choose another output"),
        ("lock vit --key own.key --architecture mlp", "'mlp' is unknown; allowed are timm-vit"),
        ("lock vit --key own.key --out other.key", "other.key: exists; choose another output"),
        ("lock locked --key own.key", "is locked already"),
        ("unlock vit --key own.key", "is not locked"),
        ("unlock locked --key other.key", "is locked with another key"),
        ("unlock locked --key own.key --heads 2", "is locked for 4 heads, not 2"),
        ("unlock cut --key own.key", "not a complete safetensors file"),
        ("unlock none --key own.key", "none.safetensors: cannot be read"),
        ("rekey locked --key other.key --new-key own.key", "is locked with another key"),
        ("rekey vit --key own.key --new-key other.key", "is not locked"),
        ("crack vit --reference vit.safetensors", "is not locked"),
        ("crack locked --reference locked.safetensors", "the reference must be a plain model"),
        ("crack locked --reference vit.safetensors --key other.key", "locked with another key"),
    ],
)
def test_refusals_are_one_message_and_touch_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, message: str
) -> None:
    monkeypatch.chdir(folder)
    locked = folder / "locked.safetensors"
    invoke("lock", "vit.safetensors", "--key", "own.key", "--out", locked)
    (folder / "cut.safetensors").write_bytes(locked.read_bytes()[:-8])
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    command, model, *options = arguments.split()
    result = invoke(command, f"{model}.safetensors", *options)
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_key_that_others_can_read_is_refused(folder: Path) -> None:
    (folder / "own.key").chmod(0o644)
    result = invoke("lock", folder / "vit.safetensors", "--key", folder / "own.key")
    assert result.exit_code == 2
    assert "allowed is 0600" in result.output


def test_a_reference_of_other_origin_ends_not_found(folder: Path) -> None:
    model, locked, out = (folder / name for name in ("vit.safetensors", "locked", "out"))
    invoke("lock", model, "--key", folder / "own.key", "--out", locked)
    generator = torch.Generator().manual_seed(0)
    other = {k: torch.randn(v.shape, generator=generator) for k, v in load_file(model).items()}
    save_file(other, folder / "other.safetensors")
    result = invoke("crack", locked, "--reference", folder / "other.safetensors", "--out", out)
    assert result.exit_code == 1
    assert "not found: the halves agree no more than chance" in result.output
    assert not out.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("where", ["model", "out"])
def test_pipes_are_neither_read_nor_replaced(folder: Path, where: str) -> None:
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    key = ("--key", folder / "own.key")
    model, out = (pipe, folder / "x") if where == "model" else (folder / "vit.safetensors", pipe)
    result = invoke("lock", model, *key, "--out", out, "--force")
    assert result.exit_code == 2
    assert "regular file" in result.output
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_link_stays_a_link(folder: Path) -> None:
    target, link = folder / "target", folder / "link"
    target.write_text("old")
    link.symlink_to(target)
    options = ("--key", folder / "own.key", "--out", link)
    assert invoke("lock", folder / "vit.safetensors", *options).exit_code == 2
    assert target.read_text() == "old"
    assert invoke("lock", folder / "vit.safetensors", *options, "--force").exit_code == 0
    assert link.is_symlink()
    assert target.stat().st_size > 1000


def test_plain_weights_are_for_their_owner_only(folder: Path) -> None:
    model, locked = folder / "vit.safetensors", folder / "locked"
    model.chmod(0o644)
    key = ("--key", folder / "own.key")
    invoke("lock", model, *key, "--out", locked)
    assert stat.S_IMODE(locked.stat().st_mode) == 0o644
    invoke("unlock", locked, *key, "--out", folder / "plain")
    options = ("--out", folder / "cracked", "--order-out", folder / "order")
    invoke("crack", locked, "--reference", model, *options)
    for name in ("plain", "cracked", "order"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_killed_command_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """The signal comes while the output is half written."""
    handler = signal.signal(number, signal.SIG_DFL)
    monkeypatch.setattr(TensorFile, "read", lambda *_: os.kill(os.getpid(), number))
    before = sorted(path.name for path in folder.iterdir())
    result = invoke("lock", folder / "vit.safetensors", "--key", folder / "own.key")
    assert result.exit_code == 128 + number
    assert sorted(path.name for path in folder.iterdir()) == before
    assert signal.signal(number, handler) is signal.SIG_DFL


def test_an_ignored_hangup_stays_ignored(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under ``nohup`` a closed terminal ends nothing."""
    read = TensorFile.read

    def hang_up(self: TensorFile, entry: TensorEntry, file: BufferedReader) -> torch.Tensor:
        os.kill(os.getpid(), signal.SIGHUP)
        return read(self, entry, file)

    monkeypatch.setattr(TensorFile, "read", hang_up)
    handler = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        result = invoke("lock", folder / "vit.safetensors", "--key", folder / "own.key")
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, handler)
    assert result.exit_code == 0


def test_keys_need_a_folder(folder: Path) -> None:
    result = invoke("keygen", "--dir", folder / "own.key", "--column")
    assert result.exit_code == 2
    assert "is a file; allowed is a folder" in result.output
