# SPDX-License-Identifier: Apache-2.0
"""Ray: does it start here, or does the cluster answer?"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from server_app.cli.health.finding import Examination, Finding
from server_app.cli.launch.environment import run_environment
from server_app.cli.launch.processes import end_processes
from server_app.cli.launch.superlink import tail
from server_app.cli.scratch import short_folder

TIMEOUT = 90.0
_PROGRAM = """
import os, ray
local = {} if os.environ.get("RAY_ADDRESS") else {"num_cpus": 1, "include_dashboard": False}
ray.init(logging_level="ERROR", log_to_driver=False, **local)
found = ray.cluster_resources()
print(f"PERMSPLIT {len(ray.nodes())} node(s), {found.get('CPU', 0):g} CPUs, "
      f"{found.get('GPU', 0):g} GPUs", flush=True)
ray.shutdown()
"""


def ray_start(examination: Examination) -> Iterator[Finding]:
    """Start a small Ray, or connect to the given one, in a process of its own."""
    home = short_folder()
    begun = time.monotonic()
    try:
        answer = _try(examination, home)
    finally:
        end_processes(home)
        shutil.rmtree(home, ignore_errors=True)
    where = examination.ray_address or "a Ray of its own"
    if answer.startswith("PERMSPLIT "):
        seconds = time.monotonic() - begun
        detail = f"{where}: {answer.removeprefix('PERMSPLIT ')} ({seconds:.0f} s)"
        yield Finding("OK", "Ray", detail)
    elif examination.ray_address:
        advice = "is it the address that 'ray start --head' printed, with the same Ray and Python?"
        yield Finding("FAIL", "Ray", f"{where} does not answer: {answer}", advice)
    else:
        advice = "look for low memory, a full /tmp, or a firewall on 127.0.0.1"
        yield Finding("FAIL", "Ray", f"does not start: {answer}", advice)


def _try(examination: Examination, home: Path) -> str:
    """Ray's answer, or the last line of what went wrong."""
    env = run_environment(
        os.environ, home=home, config=examination.config, ray_address=examination.ray_address
    )
    log = home / "ray.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            cwd=home,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        process.wait(TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return f"no answer within {TIMEOUT:.0f} s"
    lines = tail(log, 200).splitlines()
    answers = [line for line in lines if line.startswith("PERMSPLIT ")]
    return (answers or [line for line in lines if line.strip()] or ["no output"])[-1]
