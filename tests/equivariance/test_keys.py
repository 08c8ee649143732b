# SPDX-License-Identifier: Apache-2.0
"""Secrets derive without collisions, never show, and their files are safe or refused."""

import copy
import os
import pickle
import stat
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from equivariance import KeyFileError, Secret

quick = settings(deadline=None, max_examples=25, derandomize=True)
HEX = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
DERIVED = "b1e219373facf6fad6328985202a98675152803af8f9301d5b55c019c14eeef3"
SEEDED = "e5a3a5b078866ef1d104299ed4f08e1521454115f73a67c2223d35238931c79d"

purposes = st.lists(st.integers() | st.text(max_size=5), max_size=4)


def test_the_bytes_do_not_show() -> None:
    secret = Secret.from_hex(HEX)
    for shown in (repr(secret), str(secret), f"{secret}", repr([secret])):
        assert shown.strip("[]") == "Secret(hidden)"
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(secret)
    assert copy.deepcopy(secret) is copy.copy(secret) is secret


def test_random_secrets_differ_and_survive_hex() -> None:
    first, second = Secret.random(), Secret.random()
    assert first != second
    assert Secret.from_hex(first.hex()) == first
    assert Secret.from_hex(HEX.upper()).raw == bytes(range(32))


@pytest.mark.parametrize("text", ["", HEX[:-1], HEX + "0", HEX[:-1] + "g", " " + HEX[1:]])
def test_other_text_is_refused_and_not_quoted(text: str) -> None:
    with pytest.raises(ValueError, match="64 hexadecimal digits") as error:
        Secret.from_hex(text)
    assert HEX[:8] not in str(error.value)


def test_other_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="32 bytes; got 31"):
        Secret(bytes(31))


@quick
@given(purposes, purposes)
def test_different_purposes_give_different_secrets(
    first: list[int | str], second: list[int | str]
) -> None:
    assume(first != second)
    secret = Secret.from_hex(HEX)
    assert secret.derive(*first) != secret.derive(*second)
    assert secret.derive(*first) == secret.derive(*first)
    assert Secret.from_seed(0, *first) != Secret.from_seed(0, *second)


def test_neighbouring_purposes_do_not_collide() -> None:
    secret = Secret.from_hex(HEX)
    cases: list[tuple[int | str, ...]] = [
        (), ("",), ("", ""), ("1",), (1,), (-1,), ("ab", "c"), ("a", "bc"), ("abc",), (1, 2), (12,),
    ]  # fmt: skip
    derived = {secret.derive(*case).hex() for case in cases}
    assert len(derived) == len(cases)
    assert secret.hex() not in derived


def test_derivation_is_fixed() -> None:
    """Pins the format: a change here makes every key file and locked model unusable."""
    assert Secret.from_hex(HEX).derive("rows", 3).hex() == DERIVED
    assert Secret.from_seed(7, "client", 0).hex() == SEEDED


def test_a_purpose_of_another_type_is_refused() -> None:
    with pytest.raises(TypeError):
        Secret.random().derive(1.5)  # type: ignore[arg-type]


def test_a_file_is_private_and_reads_back(tmp_path: Path) -> None:
    path, secret = tmp_path / "client.key", Secret.random()
    umask = os.umask(0)
    try:
        secret.write(path)
    finally:
        os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Secret.from_file(path) == secret
    assert [entry.name for entry in tmp_path.iterdir()] == ["client.key"]
    path.chmod(0o400)
    assert Secret.from_file(str(path)) == secret


def test_a_file_is_not_overwritten(tmp_path: Path) -> None:
    path, secret = tmp_path / "client.key", Secret.random()
    secret.write(path)
    with pytest.raises(KeyFileError, match=r"client\.key: exists"):
        Secret.random().write(path)
    assert Secret.from_file(path) == secret
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(KeyFileError, match=r"missing/client\.key: cannot be written: No such"):
        secret.write(tmp_path / "missing" / "client.key")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o700, 0o666])
def test_a_file_open_to_others_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "client.key"
    Secret.from_hex(HEX).write(path)
    path.chmod(mode)
    with pytest.raises(KeyFileError, match=rf"client\.key: mode is {mode:04o}; allowed is 0600"):
        Secret.from_file(path)


@pytest.mark.parametrize("content", [HEX, HEX + "\n", HEX + "\r\n"])
def test_a_line_end_is_optional(tmp_path: Path, content: str) -> None:
    path = tmp_path / "client.key"
    path.touch(0o600)
    path.write_bytes(content.encode())
    assert Secret.from_file(path).hex() == HEX


@pytest.mark.parametrize(
    "content",
    [b"", HEX[:-1].encode(), f"{HEX}\n\n".encode(), f"{HEX}\n{HEX}\n".encode(), b"\xff" * 64],
)
def test_other_content_is_refused_and_not_quoted(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "client.key"
    path.touch(0o600)
    path.write_bytes(content)
    with pytest.raises(KeyFileError, match=r"client\.key: content is not a key") as error:
        Secret.from_file(path)
    assert HEX[:8] not in str(error.value)


def test_a_missing_file_or_a_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match="none: cannot be read: No such file"):
        Secret.from_file(tmp_path / "none")
    with pytest.raises(KeyFileError, match="cannot be read: Is a directory"):
        Secret.from_file(tmp_path)
