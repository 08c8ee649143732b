# SPDX-License-Identifier: Apache-2.0
"""Whether anybody listens at a Ray cluster's address; Ray itself takes minutes to find out."""

import re
import socket

import typer

TIMEOUT = 5.0
_HOST_AND_PORT = re.compile(r"(?P<host>[^:/\s]+):(?P<port>\d{1,5})")


def check_ray_address(address: str | None) -> None:
    """Refuse an address HOST:PORT that nobody answers at; ``auto`` and others are Ray's to judge.

    Raises
    ------
    typer.BadParameter
        If no connection is made within a few seconds.
    """
    parts = _HOST_AND_PORT.fullmatch(address or "")
    if parts is None:
        return
    try:
        socket.create_connection((parts["host"], int(parts["port"])), TIMEOUT).close()
    except (OSError, OverflowError) as error:
        raise typer.BadParameter(
            f"--ray-address = {address!r}: nobody answers there ({error}); allowed is the address "
            "that 'ray start --head' printed, or auto"
        ) from error
