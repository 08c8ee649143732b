# SPDX-License-Identifier: Apache-2.0
"""The few calls of Flower's command line: submit a run, follow its log, ask for it, stop it."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from server_app.cli.launch.environment import script
from server_app.cli.launch.superlink import CONNECTION

_CALL_TIMEOUT = 60.0


@dataclass(frozen=True, kw_only=True)
class FlowerRun:
    """A run as Flower sees it.

    Parameters
    ----------
    run_id : str
        Flower's number of it.
    status : str
        ``pending``, ``starting``, ``running``, or ``finished:`` and how it ended.
    details : str
        Why it failed, if it did.
    """

    run_id: str
    status: str
    details: str

    @property
    def over(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self.status.startswith("finished")

    @property
    def completed(self) -> bool:
        """Whether it ended well."""
        return self.status == "finished:completed"


class Flower:
    """Calls ``flwr`` in the environment of one run, whose SuperLink knows no other run.

    Parameters
    ----------
    home : Path
        The run's own ``FLWR_HOME``.
    env : Mapping[str, str]
        The run's environment.
    """

    def __init__(self, home: Path, env: Mapping[str, str]) -> None:
        self._home = home
        # Width and buffering of what flwr prints; TERM keeps its boxes free of colour.
        self._env = dict(env) | {"PYTHONUNBUFFERED": "1", "COLUMNS": "200", "TERM": "dumb"}

    def submit(self, app: Path, run_config: Path, federation: str) -> subprocess.Popen[str]:
        """Start ``flwr run --stream``; its output is the run's log.

        Parameters
        ----------
        app : Path
            Folder of the app.
        run_config : Path
            TOML file of run keys.
        federation : str
            As for ``--federation-config``.
        """
        arguments = ["run", str(app), CONNECTION, "--stream", "--run-config", str(run_config)]
        return self._popen([*arguments, "--federation-config", federation])

    def follow(self, run_id: str) -> subprocess.Popen[str]:
        """Stream the log of a run from its beginning."""
        return self._popen(["log", run_id, CONNECTION, "--stream"])

    def run(self) -> FlowerRun | None:
        """The run, or None if none was accepted or the SuperLink does not answer."""
        answer = self._call(["list", CONNECTION, "--format", "json"])
        try:
            row = json.loads(answer)["runs"][0]
            details = row.get("status-details") or ""
            return FlowerRun(run_id=row["run-id"], status=row["status"], details=details)
        except (ValueError, LookupError, TypeError):
            return None

    def stop(self, run_id: str) -> None:
        """Ask for the run's end."""
        self._call(["stop", run_id, CONNECTION])

    def _popen(self, arguments: list[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [script("flwr"), *arguments],
            cwd=self._home,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )

    def _call(self, arguments: list[str]) -> str:
        with self._popen(arguments) as process:
            try:
                return process.communicate(timeout=_CALL_TIMEOUT)[0]
            except subprocess.TimeoutExpired:
                process.kill()
                return ""


def federation_config(clients: int, client_cpus: int, client_gpus: float) -> str:
    """The text for ``--federation-config``; without ``init-args``, so a cluster can be joined."""
    return (
        f"num-supernodes={clients} client-resources-num-cpus={client_cpus} "
        f"client-resources-num-gpus={float(client_gpus)}"
    )
