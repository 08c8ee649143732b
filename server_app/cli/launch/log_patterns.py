# SPDX-License-Identifier: Apache-2.0
"""How Flower 1.42 and Ray 2.55 write, and which of it says nothing about a run."""

import re

ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_LEVEL = r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL)"

# "INFO :      text"; with FLWR_LOG_LEVEL=DEBUG a time stands before the colon.
FLOWER_RECORD = re.compile(rf"{_LEVEL} ?(?:\d{{4}}-\S+ \S+)?:(?P<text>.*)$")
# "2026-01-31 10:00:00,123\tWARNING worker.py:1234 -- text"
RAY_RECORD = re.compile(rf"\d{{4}}-\d\d-\d\d [\d:,]+\s+{_LEVEL} \S+:\d+ -- (?P<text>.*)$")
# "[2026-01-31 10:00:00,123 E 11 22] (raylet) file.cc:33: text"
RAY_CPP_RECORD = re.compile(r"\[\d{4}-\d\d-\d\d [\d:,]+ (?P<level>[IWECF]) \d+ \d+\] (?P<text>.*)$")
# "(ClientAppActor pid=11, ip=10.0.0.2) text", "(raylet) text"
ACTOR = re.compile(
    r"\((?:(?P<name>[\w.:<>]+) pid=(?P<pid>\d+)[^)]*|(?P<daemon>raylet|autoscaler)[^)]*)\)"
    r" ?(?P<text>.*)$"
)
# "ray::ClientAppActor.run() (pid=11, ip=..., repr=<...>)"
RAY_TASK = re.compile(r"ray::(?P<name>\w+)\.(?P<method>\w+)\(\) \(pid=(?P<pid>\d+).*\)")
# flwr prints its own errors in a box.
BOX_TOP = re.compile(r"╭─ Error ─+╮$")
BOX_LINE = re.compile(r"(?:│ (?P<text>.*?)\s*│|╰─+╯)$")
RAY_REMARK = re.compile(r" \(Ray deduplicates logs by default\.[^)]*\)")
PYTHON_WARNING = re.compile(r"\S+\.py:\d+: \w*Warning: ")
VOLATILE = re.compile(r"pid=\d+|ip=[\d.]+|actor_id=\w+|0x[0-9a-f]+")

NOISE = tuple(
    re.compile(pattern)
    for pattern in (
        # Flower
        r"^Using SuperLink: ",
        r"^Successfully started run \d+",
        r"^Starting logstream for run_id ",
        r"^Starting Flower Simulation$",
        r"^Since flwr [\d.]+, default simulated SuperNodes changed",
        r"^Federation `\S+` \(\d+ simulated SuperNodes\)$",
        r"^To change federation size, use the following command:$",
        r"^\s*flwr federation simulation-config ",
        r"^Successfully installed \S+ to ",
        r"^Manually terminating ClientAppActor$",
        r"^An exception was raised when processing a message by RayBackend$",
        r"^Exit Code: \d+$",
        r"^An unhandled exception occurred when running the simulation\.$",
        r"^For more information, visit: <https://flower\.ai",
        # Ray
        r"^Started a local Ray instance\.",
        r"^Connecting to existing Ray cluster at address",
        r"^Connected to Ray cluster\.",
        r"^Calling ray\.init\(\) again",
        r"metrics.* exporter agent|exporter agent",
        # Python
        r"(site|dist)-packages/\S+: (Pending)?(Deprecation|Future)Warning: ",
        r"^\s*warnings\.warn\($",
    )
)
