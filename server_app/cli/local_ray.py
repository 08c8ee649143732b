# SPDX-License-Identifier: Apache-2.0
"""Ray for a command: a cluster that runs, or one of its own that ends with the command."""

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from server_app.cli.scratch import short_folder


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
    home = None
    if address:
        ray.init(address=address, **quiet)
    else:
        home = short_folder()
        # "local": else Ray would join whatever cluster `ray start` has left on this machine.
        ray.init(address="local", include_dashboard=False, _temp_dir=str(home), **quiet)
    try:
        yield
    finally:
        ray.shutdown()
        if home is not None:
            shutil.rmtree(home, ignore_errors=True)
