# SPDX-License-Identifier: Apache-2.0
"""Folders that a run writes to."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from server_app.cli.health.finding import Examination, Finding, Level
from server_app.cli.health.machine import GIB


def storage(examination: Examination) -> Iterator[Finding]:
    """Can the run's folders be written, and is there room?"""
    config = examination.config
    folders = {
        "runs-dir": config.runs_dir,
        "state-dir": config.state_dir,
        "cache-dir": config.cache_dir,
        "temporary files": tempfile.gettempdir(),
    }
    for subject, folder in folders.items():
        if folder:
            yield folder_finding(subject, Path(folder))


def folder_finding(subject: str, folder: Path) -> Finding:
    """How a folder, or the nearest one above that exists, stands."""
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    try:
        with tempfile.TemporaryFile(dir=nearest):
            free = shutil.disk_usage(nearest).free
    except OSError as error:
        reason = error.strerror or str(error)
        advice = f"choose another with --set {subject}=DIR" if "-" in subject else "set TMPDIR"
        return Finding("FAIL", subject, f"{nearest} cannot be written: {reason}", advice)
    level: Level = "FAIL" if free < GIB / 4 else "WARN" if free < 5 * GIB else "OK"
    advice = "" if level == "OK" else "make room: checkpoints and Ray's objects go there"
    return Finding(level, subject, f"{folder}: {free / GIB:.1f} GiB free", advice)
