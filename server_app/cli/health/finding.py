# SPDX-License-Identifier: Apache-2.0
"""What a check is given and what it finds."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from config import RunConfig

Level = Literal["OK", "WARN", "FAIL"]


@dataclass(frozen=True, kw_only=True)
class Examination:
    """What is examined.

    Parameters
    ----------
    config : RunConfig
        The run that is planned, with absolute paths.
    app : Path
        Folder of the Flower app.
    ray_address : str | None
        Ray cluster to join, if any.
    """

    config: RunConfig
    app: Path
    ray_address: str | None = None


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's report.

    Parameters
    ----------
    level : {"OK", "WARN", "FAIL"}
        ``FAIL``: the run cannot work. ``WARN``: it may not, or slowly.
    subject : str
        What was looked at.
    detail : str
        What was found.
    advice : str
        What to do; empty where nothing is.
    """

    level: Level
    subject: str
    detail: str
    advice: str = ""
