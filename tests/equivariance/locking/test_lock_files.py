# SPDX-License-Identifier: Apache-2.0
"""Locked files: exact, honest about themselves, and never half written."""

import base64
import errno
import json
import os
import stat
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn
from torch.testing import assert_close

from equivariance import Inner, Secret, conjugate_state, sample_column_order
from equivariance.locking import LockError, lock_file, read_lock, rekey_file, unlock_file
from equivariance.locking.tensor_file import TensorFile

quick = settings(deadline=None, max_examples=15, derandomize=True)
OWNER, OTHER = Secret.from_seed(1), Secret.from_seed(2)


def write_raw(path: Path, header: str, data: bytes) -> None:
    text = header.encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


@pytest.mark.parametrize("inner", ["headwise", "none"])
def test_the_blocks_are_conjugated_and_all_else_is_kept(
    model_file: Path, tmp_path: Path, inner: Inner
) -> None:
    locked = tmp_path / "locked"
    lock_file(model_file, locked, OWNER, heads=4, inner=inner)
    plain, changed = load_file(model_file), load_file(locked)
    heads = 4 if inner == "headwise" else 1
    order = sample_column_order(OWNER, dim=16, heads=heads)
    blocks = {name: value for name, value in plain.items() if name.startswith("blocks.")}
    expected = plain | conjugate_state(blocks, order, heads=4, inner=inner)
    assert_close(changed, expected, rtol=0, atol=0)
    assert not torch.equal(changed["blocks.0.attn.proj.weight"], plain["blocks.0.attn.proj.weight"])


@quick
@given(
    heads=st.integers(1, 4),
    size=st.integers(1, 4),
    inner=st.sampled_from(["headwise", "none"]),
    dtype=st.sampled_from(["float16", "bfloat16", "float32", "float64", "float8_e4m3fn"]),
    seeds=st.tuples(st.integers(0, 99), st.integers(100, 199)),
)
def test_unlock_restores_the_file_and_rekey_is_unlock_and_lock(
    make_vit: Callable[..., nn.Module],
    tmp_path_factory: pytest.TempPathFactory,
    heads: int,
    size: int,
    inner: Inner,
    dtype: str,
    seeds: tuple[int, int],
) -> None:
    folder = tmp_path_factory.mktemp("files")
    plain, locked, rekeyed, back = (folder / name for name in ("plain", "locked", "new", "back"))
    state = make_vit(heads * size, heads, depth=1).state_dict()
    save_file({name: value.to(getattr(torch, dtype)) for name, value in state.items()}, plain)
    old, new = map(Secret.from_seed, seeds)
    lock_file(plain, locked, old, heads=heads, inner=inner)
    unlock_file(locked, back, old)
    assert back.read_bytes() == plain.read_bytes()
    rekey_file(locked, rekeyed, old, new)
    lock_file(plain, locked, new, heads=heads, inner=inner, force=True)
    assert rekeyed.read_bytes() == locked.read_bytes()


@pytest.mark.parametrize(
    "header",
    [
        '{{"norm.weight": {norm}, "blocks.0.norm1.weight":  {rest}}}   ',
        '{{"blocks.0.norm1.weight":{rest},"__metadata__":{{}},"norm.weight":{norm}}}',
        '{{ "__metadata__" : {{"b":"\\u00e4","a":"" }}, "blocks.0.norm1.weight":{rest},'
        '"norm.weight":{norm}}} ',
    ],
)
def test_a_header_of_any_style_comes_back(tmp_path: Path, header: str) -> None:
    """Also with signalling NaNs, which arithmetic would change."""
    plain, locked, back = tmp_path / "plain", tmp_path / "locked", tmp_path / "back"
    norm = json.dumps({"dtype": "F32", "shape": [4], "data_offsets": [16, 32]})
    rest = json.dumps({"shape": [4], "data_offsets": [0, 16], "dtype": "F32"})
    header = header.format(norm=norm, rest=rest)
    write_raw(plain, header, bytes.fromhex("010080ff") + os.urandom(28))
    lock_file(plain, locked, OWNER, heads=2)
    assert plain.read_bytes()[-32:-16] != locked.read_bytes()[-32:-16]
    unlock_file(locked, back, OWNER)
    assert back.read_bytes() == plain.read_bytes()


def test_the_file_says_what_it_is_but_not_the_key(model_file: Path, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    lock = lock_file(model_file, locked, OWNER, heads=4)
    assert read_lock(locked) == lock
    with safe_open(locked, framework="pt") as file:
        metadata = file.metadata()
    assert metadata["title"] == "Ä tiny\nmodel"
    record = json.loads(metadata["permsplit.lock"])
    assert len(record.pop("check")) == 64
    assert record == {
        "format": 1,
        "architecture": "timm-vit",
        "dim": 16,
        "heads": 4,
        "inner": "headwise",
    }
    content = locked.read_bytes()
    assert OWNER.hex().encode() not in content
    assert OWNER.raw not in content


def test_check_values_differ_with_key_and_kind(model_file: Path, tmp_path: Path) -> None:
    def check(secret: Secret, **options: Any) -> str:
        return lock_file(model_file, tmp_path / "locked", secret, force=True, **options).check

    values = [check(OWNER, heads=4), check(OTHER, heads=4), check(OWNER, heads=2)]
    values += [check(OWNER, heads=4, inner="none")]
    assert len(set(values)) == 4


def test_a_locked_file_that_another_program_wrote_anew_unlocks(
    model_file: Path, tmp_path: Path
) -> None:
    locked, back = tmp_path / "locked", tmp_path / "back"
    lock_file(model_file, locked, OWNER, heads=4)
    with safe_open(locked, framework="pt") as file:
        metadata = file.metadata() | {"epoch": "3"}
    state = load_file(locked)
    state["extra"] = torch.zeros(2)
    save_file(state, locked, metadata=metadata)
    unlock_file(locked, back, OWNER)
    expected = load_file(model_file) | {"extra": torch.zeros(2)}
    assert_close(load_file(back), expected, rtol=0, atol=0)
    with safe_open(back, framework="pt") as file:
        assert file.metadata() == {"format": "pt", "title": "Ä tiny\nmodel", "epoch": "3"}


@pytest.mark.parametrize(
    ("metadata", "config"),
    [
        ({"num_heads": "4"}, None),
        (None, {"num_attention_heads": 4, "hidden_size": 16}),
        (None, {"n_head": 4}),
    ],
)
def test_heads_are_found_beside_the_weights(
    model_file: Path, tmp_path: Path, metadata: Any, config: Any
) -> None:
    save_file(load_file(model_file), model_file, metadata=metadata)
    if config:
        (tmp_path / "config.json").write_text(json.dumps(config))
    assert lock_file(model_file, tmp_path / "locked", OWNER).heads == 4


def test_heads_of_a_named_timm_model_are_found(
    make_vit: Callable[..., nn.Module], tmp_path: Path
) -> None:
    path = tmp_path / "vit.safetensors"
    state = make_vit(192, 3, depth=1).half().state_dict()
    save_file(state, path, metadata={"timm": "vit_tiny_patch16_224"})
    assert lock_file(path, tmp_path / "locked", OWNER).heads == 3


def lock_it(source: Path, **options: Any) -> None:
    lock_file(source, source.with_name("out"), OWNER, **({"heads": 4} | options))


def unlock_it(source: Path, secret: Secret = OWNER, **options: Any) -> None:
    unlock_file(source, source.with_name("out"), secret, **options)


def rekey_it(source: Path, secret: Secret = OWNER) -> None:
    rekey_file(source, source.with_name("out"), secret, OTHER)


@pytest.mark.parametrize(
    ("locked", "action", "message"),
    [
        (True, lambda path: unlock_it(path, OTHER), "is locked with another key"),
        (True, lambda path: rekey_it(path, OTHER), "is locked with another key"),
        (True, lambda path: unlock_it(path, heads=2), "locked for 4 heads, not 2"),
        (True, lock_it, "is locked already; to change the key use rekey"),
        (False, unlock_it, "is not locked"),
        (False, rekey_it, "is not locked"),
        (False, lambda path: lock_it(path, heads=None), "heads: give --heads"),
        (False, lambda path: lock_it(path, heads=3), "heads 3: must divide the 16 features"),
        (False, lambda path: lock_it(path, architecture="resnet"), "'resnet' is unknown; allowed"),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_is_touched(
    model_file: Path, locked: bool, action: Callable[[Path], None], message: str
) -> None:
    source = model_file
    if locked:
        source = model_file.with_name("locked.safetensors")
        lock_file(model_file, source, OWNER, heads=4)
    before = source.read_bytes()
    names = sorted(path.name for path in source.parent.iterdir())
    with pytest.raises(LockError, match=message) as error:
        action(source)
    assert str(error.value).startswith(str(source))
    assert source.read_bytes() == before
    assert sorted(path.name for path in source.parent.iterdir()) == names


@pytest.mark.parametrize("keep", [0, 5, 400, -1])
@pytest.mark.parametrize("action", [lock_it, unlock_it, rekey_it])
def test_a_truncated_file_is_refused(
    model_file: Path, action: Callable[[Path], None], keep: int
) -> None:
    source = model_file
    if action is not lock_it:
        source = model_file.with_name("locked.safetensors")
        lock_file(model_file, source, OWNER, heads=4)
    source.write_bytes(source.read_bytes()[:keep])
    with pytest.raises(LockError, match="not a complete safetensors file"):
        action(source)
    assert not source.with_name("out").exists()


def test_unknown_parameters_are_all_listed(model_file: Path) -> None:
    state = load_file(model_file)
    names = ["blocks.0.ls3.gamma", "blocks.1.attn.extra"]
    save_file(state | {name: torch.ones(16) for name in names}, model_file)
    with pytest.raises(LockError, match=r"vit\.safetensors: .*no rule in timm-vit") as error:
        lock_it(model_file)
    _, *listed = str(error.value).splitlines()
    assert [line.strip() for line in listed] == names
    with pytest.raises(LockError) as error:
        lock_it(model_file, architecture="timm-vit")
    assert all(f"{name} [16]: no rule for this name" in str(error.value) for name in names)


def test_an_architecture_that_is_given_leaves_other_names_outside_alone(model_file: Path) -> None:
    save_file(load_file(model_file) | {"decoder.weight": torch.ones(3)}, model_file)
    with pytest.raises(LockError, match=r"decoder\.weight"):
        lock_it(model_file)
    lock_it(model_file, architecture="timm-vit")
    assert load_file(model_file.with_name("out"))["decoder.weight"].tolist() == [1, 1, 1]


def test_rotary_positions_allow_inner_none_only(model_file: Path) -> None:
    state = load_file(model_file)
    state |= {f"blocks.{i}.gamma_1": state.pop(f"blocks.{i}.ls1.gamma") for i in (0, 1)}
    save_file(state, model_file)
    with pytest.raises(LockError, match=r"rotary positions, .* use inner none"):
        lock_it(model_file)
    lock_it(model_file, inner="none")


@pytest.mark.parametrize("name", ["vit_pe_core_tiny_patch16_384", "qwen3_vit_88m"])
@pytest.mark.parametrize("beside", [True, False], ids=["config", "metadata"])
def test_rotary_positions_that_no_name_tells(model_file: Path, name: str, beside: bool) -> None:
    """These models' parameters are named like a plain ViT's; what tells is what it is called."""
    metadata = {} if beside else {"architecture": name}
    save_file(load_file(model_file), model_file, metadata=metadata)
    if beside:
        model_file.with_name("config.json").write_text(json.dumps({"architecture": name}))
    with pytest.raises(LockError, match=f"architecture {name} of its .* rotary positions"):
        lock_it(model_file)
    lock_it(model_file, inner="none")


def test_heads_that_contradict_the_surroundings_are_refused(model_file: Path) -> None:
    config = model_file.with_name("config.json")
    config.write_text('{"num_attention_heads": 8}')
    with pytest.raises(LockError, match=r"heads 4: num_attention_heads of its config\.json is 8"):
        lock_it(model_file)
    config.write_text('{"num_attention_heads": 5}')  # cannot be this model's
    lock_it(model_file)
    assert read_lock(model_file.with_name("out")).heads == 4


def test_a_plain_file_may_have_had_a_header_text(model_file: Path) -> None:
    save_file(load_file(model_file), model_file, metadata={"permsplit.header": "mine"})
    before = model_file.read_bytes()
    lock_it(model_file)
    unlock_file(model_file.with_name("out"), model_file.with_name("back"), OWNER)
    assert model_file.with_name("back").read_bytes() == before


@pytest.mark.parametrize("header", ["[" * 200_000, "0" * 200_000_000], ids=["deep", "huge"])
def test_a_forged_header_text_is_set_aside(model_file: Path, header: str) -> None:
    """The tensors come back, under the file's own header; memory stays bounded."""
    lock_it(model_file)
    locked, back = model_file.with_name("out"), model_file.with_name("back")
    packed = base64.b64encode(zlib.compress(header.encode())).decode()
    record = TensorFile.open(locked).metadata["permsplit.lock"]
    metadata = {"permsplit.lock": record, "permsplit.header": packed}
    save_file(load_file(locked), locked, metadata=metadata)
    unlock_file(locked, back, OWNER)
    assert_close(load_file(back), load_file(model_file), rtol=0, atol=0)


def test_a_model_of_another_kind_is_refused(model_file: Path) -> None:
    save_file({"features.0.weight": torch.ones(4, 4), "fc.weight": torch.ones(4)}, model_file)
    with pytest.raises(LockError, match=r"no architecture's rules cover the model; known are: "):
        lock_it(model_file)


@pytest.mark.parametrize(
    "record",
    ["", "[]", "{}", '{"format": 2}', '{"format": 1, "dim": 16}', "[" * 100_000,
     '{"format": 1, "architecture": "timm-vit", "dim": 16, "heads": 3, "inner": "headwise", '
     '"check": "00"}'],
    ids=range(7),
)  # fmt: skip
def test_a_record_that_is_not_understood_is_refused(model_file: Path, record: str) -> None:
    save_file(load_file(model_file), model_file, metadata={"permsplit.lock": record})
    with pytest.raises(LockError, match=r"lock format 2; known is 1|cannot be understood"):
        unlock_it(model_file)


def test_an_existing_output_is_kept_unless_forced(model_file: Path) -> None:
    out = model_file.with_name("out")
    out.write_text("mine")
    with pytest.raises(LockError, match="out: exists; choose another output or --force"):
        lock_it(model_file)
    assert out.read_text() == "mine"
    lock_it(model_file, force=True)
    assert read_lock(out).heads == 4


def test_a_model_may_be_locked_in_its_place(model_file: Path) -> None:
    before = model_file.read_bytes()
    model_file.chmod(0o640)
    lock_file(model_file, model_file, OWNER, heads=4, force=True)
    assert stat.S_IMODE(model_file.stat().st_mode) == 0o640
    unlock_file(model_file, model_file, OWNER, force=True)
    assert model_file.read_bytes() == before
    assert stat.S_IMODE(model_file.stat().st_mode) == 0o600  # plain weights again


def fail_to_flush(_: int) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def become_shorter(model_file: Path) -> Callable[..., torch.Tensor]:
    read = TensorFile.read
    seen: list[str] = []

    def shorter(self: TensorFile, entry: Any, file: Any) -> torch.Tensor:
        seen.append(entry.name)
        if len(seen) == 3:
            os.truncate(self.path, self.path.stat().st_size // 2)
        return read(self, entry, file)

    return shorter


@pytest.mark.parametrize("force", [False, True])
def test_a_full_disk_leaves_what_was_there(
    model_file: Path, monkeypatch: pytest.MonkeyPatch, force: bool
) -> None:
    out, before = model_file.with_name("out"), model_file.read_bytes()
    if force:
        out.write_text("mine")
    names = sorted(path.name for path in model_file.parent.iterdir())
    monkeypatch.setattr(os, "fsync", fail_to_flush)
    with pytest.raises(LockError, match="out: cannot be written: No space left on device"):
        lock_it(model_file, force=force)
    assert model_file.read_bytes() == before
    assert sorted(path.name for path in model_file.parent.iterdir()) == names
    assert not force or out.read_text() == "mine"


def test_a_source_that_shrinks_midway_leaves_nothing_behind(
    model_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = sorted(path.name for path in model_file.parent.iterdir())
    monkeypatch.setattr(TensorFile, "read", become_shorter(model_file))
    with pytest.raises(LockError, match="became shorter while it was read"):
        lock_it(model_file)
    assert sorted(path.name for path in model_file.parent.iterdir()) == names


def test_a_folder_that_is_not_there_is_named(model_file: Path, tmp_path: Path) -> None:
    with pytest.raises(LockError, match="cannot be written: No such file"):
        lock_file(model_file, tmp_path / "no" / "out", OWNER, heads=4)
    with pytest.raises(LockError, match="cannot be read: No such file"):
        lock_file(tmp_path / "no", tmp_path / "out", OWNER, heads=4)
