# SPDX-License-Identifier: Apache-2.0
"""The environment of the processes of one run: Flower's, Ray's and the app's."""

import os
import shutil
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from config import RunConfig

QUIET = {
    # No outbound calls, no second installation of the dependencies.
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    # Bars of other libraries make no sense in a log.
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
}
# What a user exports for runs of their own would send this one elsewhere.
FOREIGN = (
    "FLWR_HOME", "FLWR_LOCAL_SUPERLINK_HTTP_API_PORT", "FLWR_LOCAL_CONTROL_API_PORT",
    "FLWR_INTERNAL_GRPC_CONTROL_API", "FLWR_INTERNAL_GRPC_FLEET_API", "RAY_ADDRESS", "RAY_TMPDIR",
)  # fmt: skip


def run_environment(
    base: Mapping[str, str], *, home: Path, config: RunConfig, ray_address: str | None
) -> dict[str, str]:
    """``base`` with what one run needs.

    Parameters
    ----------
    base : Mapping[str, str]
        The caller's environment.
    home : Path
        The run's own ``FLWR_HOME``. Ray's session goes there too, unless a cluster is joined:
        otherwise ``ray.init`` would join whatever ``ray start`` has left on this machine.
    config : RunConfig
        Decides whether the Hugging Face hub may be asked.
    ray_address : str | None
        Address of the Ray cluster to join.
    """
    env = {name: value for name, value in base.items() if name not in FOREIGN}
    env |= QUIET | {"FLWR_HOME": str(home)}
    env["PATH"] = os.pathsep.join([scripts_folder(), env.get("PATH", os.defpath)])
    if ray_address:
        env["RAY_ADDRESS"] = ray_address
    else:
        env["RAY_TMPDIR"] = str(home)
    if not needs_hub(config):
        env["HF_HUB_OFFLINE"] = "1"
    return env


def needs_hub(config: RunConfig) -> bool:
    """Whether data or weights may come from the Hugging Face hub."""
    return config.data.startswith("hf:") or config.weights.partition(":")[0] == "hub"


def scripts_folder() -> str:
    """Where this Python's scripts lie; SuperLink starts its own helpers by name."""
    return sysconfig.get_path("scripts")


def script(name: str) -> str:
    """Path of a script such as ``flwr``, of this Python if it has it.

    Raises
    ------
    FileNotFoundError
        If it is not installed.
    """
    found = shutil.which(name, path=scripts_folder()) or shutil.which(name)
    if found is None:
        raise FileNotFoundError(f"'{name}' is not installed: pip install 'flwr[simulation]'")
    return found
