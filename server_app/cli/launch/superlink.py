# SPDX-License-Identifier: Apache-2.0
"""A SuperLink of one's own for one run.

``flwr run`` would start a detached one itself, shared by all projects of the user, and throw its
output away. Started here it is a child: its death is seen, its log kept, its end certain.
"""

import http.client
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from server_app.cli.launch.environment import script
from server_app.cli.launch.processes import end_processes

CONNECTION = "permsplit"
_ATTEMPTS = 3


class SuperLinkError(RuntimeError):
    """The SuperLink did not start, or died."""


class SuperLink:
    """A local SuperLink in simulation mode, on a free port, with its state in memory.

    Parameters
    ----------
    home : Path
        The run's own ``FLWR_HOME``; receives Flower's configuration and the SuperLink's log.
    env : Mapping[str, str]
        Environment of the SuperLink and so of ServerApp, clients and Ray.
    timeout : float
        Seconds until it must answer.
    """

    def __init__(self, home: Path, env: Mapping[str, str], timeout: float = 60.0) -> None:
        self.home = home
        self.port = 0
        self._env = dict(env)
        self._timeout = timeout
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log_path(self) -> Path:
        """What the SuperLink printed."""
        return self.home / "superlink.log"

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it and wait until it answers.

        Raises
        ------
        SuperLinkError
            If it does not come up.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            if self._start():
                return
            if attempt < _ATTEMPTS and not self.alive:
                continue  # most likely another process took the port in between
            raise SuperLinkError(self.describe_end())

    def stop(self) -> None:
        """End the SuperLink and every process that came from it."""
        if self._process is not None and self.alive:
            self._process.terminate()
            try:
                self._process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        end_processes(self.home)

    def describe_end(self) -> str:
        """Why it is gone, with the end of its log."""
        code = None if self._process is None else self._process.poll()
        state = "does not answer" if code is None else f"ended with code {code}"
        return f"the SuperLink {state}; the end of its log:\n{tail(self.log_path)}"

    def _start(self) -> bool:
        self.port = free_port()
        write_connection(self.home, self.port)
        command = [script("flower-superlink"), "--insecure", "--simulation"]
        command += ["--isolation", "subprocess", "--host", "127.0.0.1", "--port", str(self.port)]
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self.home,  # Ray's workers import from this folder before the app's bundle
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C in the terminal is for permsplit alone
            )
        deadline = time.monotonic() + self._timeout
        while self.alive and time.monotonic() < deadline:
            if _answers(self.port):
                return self.alive
            time.sleep(0.1)
        return False


def write_connection(home: Path, port: int) -> None:
    """Tell ``flwr`` where the SuperLink is."""
    (home / "config.toml").write_text(
        f'[superlink]\ndefault = "{CONNECTION}"\n\n'
        f'[superlink.{CONNECTION}]\naddress = "127.0.0.1:{port}"\ninsecure = true\n',
        encoding="utf-8",
    )


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def tail(path: Path, lines: int = 30) -> str:
    """The last lines of a text file; empty if there is none."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1.0)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
