# SPDX-License-Identifier: Apache-2.0
"""Where secrets come from, and which key files are refused."""

from pathlib import Path

import pytest
from federation import tiny_config

from clients.secrets import client_secret, column_secret
from equivariance import KeyFileError, Secret


def test_a_seed_gives_each_client_its_own_and_the_column_another(tmp_path: Path) -> None:
    config, other = tiny_config(tmp_path), tiny_config(tmp_path, seed=1)
    drawn = [
        *(client_secret(config, client) for client in range(3)),
        *(client_secret(other, client) for client in range(3)),
        column_secret(config),
        column_secret(other),
    ]
    assert len({secret.raw for secret in drawn}) == 8
    assert client_secret(config, 2) == drawn[2]


def test_random_is_fresh_unless_one_is_known(tmp_path: Path) -> None:
    config = tiny_config(tmp_path, key_source="random")
    known = Secret.random()
    assert client_secret(config, 0) != client_secret(config, 0)
    assert client_secret(config, 0, known) == known
    assert not list(tmp_path.rglob("*.key"))


def test_files_are_read_by_client_number(tmp_path: Path) -> None:
    config = tiny_config(tmp_path, key_source="file", key_dir=str(tmp_path))
    written = {name: Secret.random() for name in ("client-007", "client-012", "column")}
    for name, secret in written.items():
        secret.write(tmp_path / f"{name}.key")
    assert client_secret(config, 7) == written["client-007"]
    assert client_secret(config, 12) == written["client-012"]
    assert column_secret(config) == written["column"]


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o700])
def test_a_key_that_others_may_use_is_refused(tmp_path: Path, mode: int) -> None:
    config = tiny_config(tmp_path, key_source="file", key_dir=str(tmp_path))
    path = tmp_path / "client-000.key"
    Secret.random().write(path)
    path.chmod(mode)
    with pytest.raises(KeyFileError, match=rf"client-000\.key: mode is {mode:04o}; allowed"):
        client_secret(config, 0)


def test_a_missing_or_spoilt_key_names_its_path(tmp_path: Path) -> None:
    config = tiny_config(tmp_path, key_source="file", key_dir=str(tmp_path))
    with pytest.raises(KeyFileError, match=r"client-001\.key: cannot be read"):
        client_secret(config, 1)
    path = tmp_path / "client-001.key"
    path.touch(mode=0o600)
    path.write_text("abc\n")
    with pytest.raises(KeyFileError, match=r"client-001\.key: content is not a key"):
        client_secret(config, 1)
    with pytest.raises(KeyFileError, match=r"column\.key: cannot be read"):
        column_secret(config)
