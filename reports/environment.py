# SPDX-License-Identifier: Apache-2.0
"""What a run ran on: versions of the software, and the machine."""

import os
import platform
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

PACKAGES = ("flwr", "ray", "torch", "timm", "permsplit")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide a run's numbers."""
    return {"python": platform.python_version()} | {name: _version(name) for name in PACKAGES}


def machine() -> dict[str, object]:
    """Usable CPU cores (``cpus``), CPU model (``cpu``) and GPU names (``gpus``)."""
    return {"cpus": _cpu_count(), "cpu": _cpu_model(), "gpus": _gpu_names()}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _cpu_count() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _gpu_names() -> list[str]:
    """Names from ``nvidia-smi``: this package does without torch."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    query = [program, "--query-gpu=name", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in answer.stdout.splitlines() if line.strip()]
