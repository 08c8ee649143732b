# SPDX-License-Identifier: Apache-2.0
"""GPU, memory and ports of this machine."""

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

from server_app.cli.health.finding import Examination, Finding, Level
from server_app.cli.launch.superlink import free_port

GIB = 2**30
MEMINFO = Path("/proc/meminfo")
SHARED_MEMORY = Path("/dev/shm")


def gpu(examination: Examination) -> Iterator[Finding]:
    """Does torch see a GPU, and does the run ask for one?"""
    import torch

    wanted = examination.config.trunk_gpus
    if torch.cuda.is_available():
        names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
        advice = "" if wanted else "the trunk runs on the CPU; use it with --set trunk-gpus=1"
        yield Finding("OK", "GPU", ", ".join(names), advice)
    elif wanted and not examination.ray_address:
        advice = "install a torch build for your GPU, or --set trunk-gpus=0"
        yield Finding("FAIL", "GPU", f"none, but trunk-gpus = {wanted}", advice)
    else:
        yield Finding("OK", "GPU", f"none: all on the CPU ({torch.get_num_threads()} threads)")


def memory(_: Examination) -> Iterator[Finding]:
    """Is there memory for Ray's processes (about 0.5 GiB each) and its object store?"""
    available = available_memory()
    if available is not None:
        level: Level = "FAIL" if available < GIB else "WARN" if available < 3 * GIB else "OK"
        advice = "" if level == "OK" else "close other programs, or use fewer clients at once"
        yield Finding(level, "memory", f"{available / GIB:.1f} GiB available", advice)
    if SHARED_MEMORY.is_dir():
        free = shutil.disk_usage(SHARED_MEMORY).free
        low = free < GIB
        advice = "Ray falls back to slow files; in Docker: --shm-size=4g" if low else ""
        detail = f"{free / GIB:.1f} GiB free in {SHARED_MEMORY}"
        yield Finding("WARN" if low else "OK", "shared memory", detail, advice)


def ports(_: Examination) -> Iterator[Finding]:
    """Can a process listen on this machine, and another reach it?"""
    try:
        port = free_port()
        with socket.create_server(("127.0.0.1", port)):
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError as error:
        advice = "allow connections on 127.0.0.1: Flower and Ray need them"
        yield Finding("FAIL", "ports", f"no connection on 127.0.0.1: {error}", advice)
    else:
        yield Finding("OK", "ports", f"can listen on 127.0.0.1 (tried {port})")


def available_memory() -> int | None:
    """Bytes that new processes can use, or None where that is unknown."""
    try:
        lines = MEMINFO.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None
