# SPDX-License-Identifier: Apache-2.0
"""Randomness is derived, never global: a seed for each purpose, and the scope in which it rules."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch


def derive_seed(run_seed: int, *purpose: int | str) -> int:
    """A 63-bit seed for one purpose, such as ``derive_seed(seed, "noise", client, round, step)``.

    Equal arguments give equal seeds on every machine; different ones are independent (SHA-256 of
    an unambiguous encoding). These seeds are public: anything that must stay secret comes from a
    client's :class:`equivariance.Secret` instead.
    """
    text = repr((int(run_seed), *purpose)).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little") >> 1


def derived_generator(seed: int) -> torch.Generator:
    """A CPU generator that starts at ``seed``."""
    return torch.Generator().manual_seed(seed)


@contextmanager
def seeded(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Run torch's own random layers (drop-path, initialisation) from ``seed``.

    The global generators are put back afterwards, so nothing outside sees a change.
    """
    cuda = [device] if device is not None and device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        torch.manual_seed(seed)
        yield
