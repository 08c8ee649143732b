# SPDX-License-Identifier: Apache-2.0
"""Where a client's secrets come from."""

from pathlib import Path

from config import RunConfig
from equivariance import Secret


def client_secret(config: RunConfig, client: int, known: Secret | None = None) -> Secret:
    """The 256-bit secret of one client.

    ``key-source = "seed"`` derives it from the run's seed (simulation: anybody with the config
    can), ``"file"`` reads ``client-NNN.key`` from ``key-dir``, ``"random"`` keeps the ``known``
    one or makes a fresh one, which is never written.

    Raises
    ------
    equivariance.KeyFileError
        If the key file is missing, readable by others, or no key.
    """
    if config.key_source == "file":
        return Secret.from_file(Path(config.key_dir) / f"client-{client:03d}.key")
    if config.key_source == "seed":
        return Secret.from_seed(config.seed, "client", client)
    return known or Secret.random()


def column_secret(config: RunConfig) -> Secret:
    """The secret of the column permutation, shared by all clients and withheld from the server."""
    if config.key_source == "file":
        return Secret.from_file(Path(config.key_dir) / "column.key")
    return Secret.from_seed(config.seed, "column")
