# SPDX-License-Identifier: Apache-2.0
"""All commands. To add one, write its file and add a line here.

The files import what is heavy (torch, Flower, Ray, pandas) inside their functions, so that
``permsplit --help`` stays quick.
"""

from collections.abc import Callable

from server_app.cli.attack import attack
from server_app.cli.crack import crack
from server_app.cli.doctor import doctor
from server_app.cli.keygen import keygen
from server_app.cli.keys import keys
from server_app.cli.lock import lock
from server_app.cli.rekey import rekey
from server_app.cli.report import report
from server_app.cli.run import run
from server_app.cli.sweep import sweep
from server_app.cli.unlock import unlock
from server_app.cli.verify import verify

COMMANDS: dict[str, Callable[..., None]] = {
    "run": run,
    "attack": attack,
    "sweep": sweep,
    "report": report,
    "doctor": doctor,
    "keys": keys,
    "keygen": keygen,
    "lock": lock,
    "unlock": unlock,
    "rekey": rekey,
    "crack": crack,
    "verify": verify,
}
