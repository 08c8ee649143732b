# SPDX-License-Identifier: Apache-2.0
"""A run on disk: its layout, writing and reading.

::

    <runs-dir>/<run>/
        config.toml       the resolved keys of the run
        run.json          status, times, versions, machine, clients and further facts
        progress.json     where the run is just now, replaced often
        metrics.parquet/  utility of each round             (append-only, parts)
        ledger.parquet/   bytes and seconds of each leg     (append-only, parts)
        attacks.parquet/  results of attacks                (append-only, parts)
        checkpoints/      one folder a round: round-0003
        traffic/          recorded smashed data, if asked
        figures/          of the report
        report.md
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

import pandas as pd
import tomli_w

from reports import atomic, environment
from reports.errors import RunFolderError
from reports.part_table import PartTable
from reports.schemas import ATTACKS, LEDGER, METRICS, Rows

Status = Literal["running", "finished", "failed", "stopped"]

CLIENT_WEIGHTS = "clients.safetensors"
"""File of a checkpoint: averaged weights of the clients, ``edge/...`` and ``tail/...``."""

NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
CHECKPOINT = re.compile(r"round-(\d{4,})")
FOLDERS = (
    "metrics.parquet", "ledger.parquet", "attacks.parquet", "checkpoints", "traffic", "figures",
)  # fmt: skip


class RunFolder:
    """One run's folder. Get it from :meth:`create` or :meth:`open`.

    All writes are atomic: a reader beside a running server sees the old state or the new one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._metrics = PartTable(path / "metrics.parquet", METRICS)
        self._ledger = PartTable(path / "ledger.parquet", LEDGER)
        self._attacks = PartTable(path / "attacks.parquet", ATTACKS)

    def __repr__(self) -> str:
        return f"RunFolder({str(self.path)!r})"

    # -- making and opening -----------------------------------------------------------------

    @classmethod
    def create(cls, runs_dir: str | Path, name: str, config: Mapping[str, object]) -> "RunFolder":
        """Make the folder of a new run, with status ``running``.

        Parameters
        ----------
        runs_dir : str | Path
            Folder of all runs, made if missing.
        name : str
            Name of the run: letters, digits, ``.``, ``_`` and ``-``, not starting with a dot.
        config : Mapping[str, object]
            The resolved keys of the run, as TOML values.

        Raises
        ------
        RunFolderError
            If the run exists, or its name cannot be a folder's.
        """
        if not NAME.fullmatch(name):
            raise RunFolderError(
                f"run-name {name!r}: use letters, digits, '.', '_' and '-', and no dot in front"
            )
        path = Path(runs_dir) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        taken = f"{path} exists already: choose another run-name, or continue it with resume = true"
        if path.exists():
            raise RunFolderError(taken)
        try:
            with atomic.new_folder(path) as draft:
                _fill(draft, config)
        except OSError as error:
            if path.exists():  # another run took the name in between
                raise RunFolderError(taken) from error
            raise
        return cls(path)

    @classmethod
    def open(cls, path: str | Path) -> "RunFolder":
        """Open an existing run.

        Raises
        ------
        RunFolderError
            If there is no such folder, or ``config.toml`` or ``run.json`` is missing or broken;
            names all that is wrong.
        """
        run = cls(Path(path))
        if not run.path.is_dir():
            raise RunFolderError(f"{path}: no such folder")
        problems = [*_problem(run.config_path, run.config), *_problem(run.facts_path, run.facts)]
        if problems:
            raise RunFolderError(f"{path} is not a run: {'; '.join(problems)}")
        return run

    # -- paths --------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.path.resolve().name

    @property
    def config_path(self) -> Path:
        """The resolved keys of the run."""
        return self.path / "config.toml"

    @property
    def facts_path(self) -> Path:
        """Status, times, versions, machine and further facts."""
        return self.path / "run.json"

    @property
    def progress_path(self) -> Path:
        """Where the run is just now."""
        return self.path / "progress.json"

    @property
    def metrics_path(self) -> Path:
        """Folder of the metrics' parts."""
        return self._metrics.folder

    @property
    def ledger_path(self) -> Path:
        """Folder of the ledger's parts."""
        return self._ledger.folder

    @property
    def attacks_path(self) -> Path:
        """Folder of the attack results' parts."""
        return self._attacks.folder

    @property
    def checkpoints_path(self) -> Path:
        """Folder of the checkpoints."""
        return self.path / "checkpoints"

    @property
    def traffic_path(self) -> Path:
        """Folder of the recorded smashed data."""
        return self.path / "traffic"

    @property
    def figures_path(self) -> Path:
        """Folder of the report's figures."""
        return self.path / "figures"

    @property
    def report_path(self) -> Path:
        """The report."""
        return self.path / "report.md"

    # -- tables -------------------------------------------------------------------------------

    def append_metrics(self, rows: Rows, *, round: int) -> None:
        """Append ``rows`` of one round; the column ``round`` need not be in them.

        Raises
        ------
        RunFolderError
            If a row does not fit :data:`reports.schemas.METRICS`; nothing is written then.
        """
        self._metrics.append(rows, round=round)

    def append_ledger(self, rows: Rows, *, round: int) -> None:
        """Append ``rows`` of one round; the column ``round`` need not be in them.

        Raises
        ------
        RunFolderError
            If a row does not fit :data:`reports.schemas.LEDGER`; nothing is written then.
        """
        self._ledger.append(rows, round=round)

    def append_attacks(self, rows: Rows) -> None:
        """Append results of attacks.

        Raises
        ------
        RunFolderError
            If a row does not fit :data:`reports.schemas.ATTACKS`; nothing is written then.
        """
        self._attacks.append(rows)

    def metrics(self) -> pd.DataFrame:
        """All metrics, in the order of their writing."""
        return self._metrics.read()

    def ledger(self) -> pd.DataFrame:
        """Bytes and seconds of all legs, in the order of their writing."""
        return self._ledger.read()

    def attacks(self) -> pd.DataFrame:
        """Results of all attacks, in the order of their writing."""
        return self._attacks.read()

    # -- facts --------------------------------------------------------------------------------

    def config(self) -> dict[str, Any]:
        """The resolved keys of the run."""
        return tomllib.loads(self.config_path.read_text(encoding="utf-8"))

    def facts(self) -> dict[str, Any]:
        """What ``run.json`` holds: status, error, started, finished (ISO times), facts."""
        facts = json.loads(self.facts_path.read_text(encoding="utf-8"))
        if not isinstance(facts, dict):
            raise ValueError("not a JSON object")
        return facts

    def set_status(self, status: Status, error: str | None = None) -> None:
        """Say how the run stands. ``running`` again (resume) clears the end and the error.

        Parameters
        ----------
        status : {"running", "finished", "failed", "stopped"}
        error : str | None
            What went wrong, with its traceback where there is one.
        """
        if status not in get_args(Status):
            raise RunFolderError(f"status {status!r}: use one of {', '.join(get_args(Status))}")
        facts = self.facts() | {"status": status, "error": error, "finished": None}
        if status != "running":
            facts["finished"] = _now()
        _write_json(self.facts_path, facts)

    def add_facts(self, mapping: Mapping[str, object]) -> None:
        """Add facts to ``run.json``; a mapping under a known name is merged into what is there."""
        facts = self.facts()
        for name, value in mapping.items():
            known = facts.get(name)
            merge = isinstance(known, dict) and isinstance(value, Mapping)
            facts[name] = {**known, **value} if merge else value  # type: ignore[dict-item]
        _write_json(self.facts_path, facts)

    def write_progress(self, mapping: Mapping[str, object]) -> None:
        """Replace ``progress.json``; the time (``updated``, ISO) is added."""
        _write_json(self.progress_path, {**mapping, "updated": _now()})

    def progress(self) -> dict[str, Any]:
        """The last progress written; empty before the first, or if it cannot be read."""
        if not self.progress_path.is_file():
            return {}
        try:
            progress = json.loads(self.progress_path.read_text(encoding="utf-8"))
        except ValueError:
            return {}
        return progress if isinstance(progress, dict) else {}

    # -- checkpoints --------------------------------------------------------------------------

    def checkpoint(self, round: int) -> Path:
        """Folder of the checkpoint after ``round``, whether it exists or not."""
        return self.checkpoints_path / f"round-{round:04d}"

    @contextmanager
    def new_checkpoint(self, round: int) -> Iterator[Path]:
        """Yield a folder to fill; it becomes ``checkpoint(round)`` when the block ends well."""
        self.checkpoints_path.mkdir(exist_ok=True)
        with atomic.new_folder(self.checkpoint(round)) as draft:
            yield draft
            if self.checkpoint(round).exists():
                atomic.remove_folder(self.checkpoint(round))

    def latest_checkpoint(self) -> Path | None:
        """The checkpoint of the latest round, or None; unfinished ones do not count."""
        rounds = self._checkpoint_rounds()
        return self.checkpoint(rounds[-1]) if rounds else None

    def truncate_after(self, round: int) -> None:
        """Forget all that was written for later rounds, before the run resumes after ``round``.

        Drops the tables' parts and the checkpoints of later rounds, and notes time and round under
        ``resumed`` in ``run.json``.
        """
        for table in (self._metrics, self._ledger, self._attacks):
            table.truncate_after(round)
        for later in reversed(self._checkpoint_rounds()):
            if later > round:
                atomic.remove_folder(self.checkpoint(later))
        resumed = [*self.facts().get("resumed", []), {"time": _now(), "after_round": round}]
        self.add_facts({"resumed": resumed})

    def _checkpoint_rounds(self) -> list[int]:
        if not self.checkpoints_path.is_dir():
            return []
        matches = (CHECKPOINT.fullmatch(path.name) for path in self.checkpoints_path.iterdir())
        return sorted(int(match[1]) for match in matches if match)


def _fill(folder: Path, config: Mapping[str, object]) -> None:
    for name in FOLDERS:
        (folder / name).mkdir()
    atomic.write_text(folder / "config.toml", tomli_w.dumps(dict(config)))
    facts = {
        "status": "running",
        "error": None,
        "started": _now(),
        "finished": None,
        "clients": None,
        "versions": environment.versions(),
        "machine": environment.machine(),
    }
    _write_json(folder / "run.json", facts)


def _problem(path: Path, read: Any) -> Iterator[str]:
    try:
        read()
    except FileNotFoundError:
        yield f"{path.name} is missing"
    except ValueError as error:
        yield f"{path.name} cannot be read: {error}"


def _write_json(path: Path, value: Mapping[str, object]) -> None:
    atomic.write_text(path, json.dumps(value, indent=2, default=_plain) + "\n")


def _plain(value: object) -> object:
    """NumPy scalars and arrays as Python's, anything else as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
