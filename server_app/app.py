# SPDX-License-Identifier: Apache-2.0
"""The ServerApp."""

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from config import parse_run_config
from server_app.checks import RULES
from server_app.run import execute

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Check the whole configuration, then run it."""
    execute(grid, parse_run_config(context.run_config, rules=RULES))
