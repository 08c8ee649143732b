# SPDX-License-Identifier: Apache-2.0
"""Ray for a command: a cluster that runs, or one of its own that ends with the command."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def started(address: str | None) -> Iterator[None]:
    """Ray is up inside the block.

    Parameters
    ----------
    address : str, optional
        A running cluster to join; None: a Ray of this machine.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray's coming default, which only changes what tasks without a GPU see; else it warns.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray

    quiet = {"log_to_driver": False, "logging_level": logging.WARNING}
    if address:
        ray.init(address=address, **quiet)
    else:
        ray.init(include_dashboard=False, **quiet)
    try:
        yield
    finally:
        ray.shutdown()
