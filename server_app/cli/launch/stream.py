# SPDX-License-Identifier: Apache-2.0
"""The lines of a run's log as they come, each once."""

import queue
import subprocess
import threading
from collections.abc import Iterator

_POLL = 0.2
_START = "Starting logstream for run_id"


class LogStream:
    """A run's log over one or more processes of ``flwr``.

    A stream that broke off and is opened again starts from the log's beginning; what was given
    before is left out.
    """

    def __init__(self) -> None:
        self._given = 0

    def lines(self, process: subprocess.Popen[str]) -> Iterator[str]:
        """New lines of ``process`` with their ends; an empty text if none comes for 0.2 s."""
        position: int | None = None  # in the run's log, which begins after flwr's own lines
        incoming = _read(process)
        while (line := _next(incoming)) is not None:
            if position is not None and line:
                position += 1
                if position <= self._given:
                    continue
                self._given = position
            elif _START in line:
                position = 0
            yield line


def _read(process: subprocess.Popen[str]) -> "queue.Queue[str | None]":
    """The lines of a process, then None."""
    lines: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    return lines


def _next(lines: "queue.Queue[str | None]") -> str | None:
    """The next line; an empty text if there is none just now; None at the end."""
    try:
        return lines.get(timeout=_POLL)
    except queue.Empty:
        return ""
