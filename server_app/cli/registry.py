# SPDX-License-Identifier: Apache-2.0
"""All commands. To add one, write its file and add a line here.

The files import what is heavy (torch, Flower, Ray, pandas) inside their functions, so that
``permsplit --help`` stays quick.
"""

from collections.abc import Callable

from server_app.cli.doctor import doctor
from server_app.cli.keygen import keygen
from server_app.cli.keys import keys
from server_app.cli.report import report
from server_app.cli.run import run

COMMANDS: dict[str, Callable[..., None]] = {
    "run": run,
    "report": report,
    "doctor": doctor,
    "keys": keys,
    "keygen": keygen,
}
