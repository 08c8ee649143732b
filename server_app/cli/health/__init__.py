# SPDX-License-Identifier: Apache-2.0
"""The checks of ``permsplit doctor``. To add one, write it and add a line to ``CHECKS``.

A check takes the :class:`Examination` and yields findings. It never raises for what it examines.
"""

from collections.abc import Callable, Iterator

from server_app.cli.health.bundle import bundle
from server_app.cli.health.finding import Examination, Finding, Level
from server_app.cli.health.inputs import data_source, weights_file
from server_app.cli.health.machine import gpu, memory, ports
from server_app.cli.health.packages import packages, python_version
from server_app.cli.health.ray_start import ray_start
from server_app.cli.health.storage import storage

__all__ = ["CHECKS", "Examination", "Finding", "Level", "examine"]

Check = Callable[[Examination], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    python_version,
    packages,
    gpu,
    memory,
    storage,
    ports,
    data_source,
    weights_file,
    bundle,
    ray_start,
)


def examine(examination: Examination) -> Iterator[Finding]:
    """The findings of all checks, one by one as they are made."""
    for check in CHECKS:
        yield from check(examination)
