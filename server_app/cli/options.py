# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Preset = Annotated[
    str | None,
    typer.Option("--preset", help="Name of a preset, or a path to a TOML file.", metavar="NAME"),
]
Assignments = Annotated[
    list[str] | None,
    typer.Option("--set", help="Overrides one key; may be repeated.", metavar="KEY=VALUE"),
]
Clients = Annotated[
    int | None, typer.Option("--clients", min=1, help="Number of simulated clients.", metavar="N")
]
RunsDir = Annotated[
    Path | None, typer.Option("--runs-dir", help="Folder of all runs.", metavar="DIR")
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray-address",
        envvar="RAY_ADDRESS",
        help="Join this running Ray cluster, such as 10.0.0.1:6379, or auto.",
        metavar="ADDR",
    ),
]
ClientCpus = Annotated[
    int, typer.Option("--client-cpus", min=1, help="CPUs set aside for a client process.")
]
ClientGpus = Annotated[
    float, typer.Option("--client-gpus", min=0, help="GPUs likewise, such as 0.25.")
]
App = Annotated[
    Path | None,
    typer.Option("--app", help="Folder of the Flower app, if not this checkout.", metavar="DIR"),
]
