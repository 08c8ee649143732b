# SPDX-License-Identifier: Apache-2.0
"""Starting a run through ``flwr run``, showing how it goes, and leaving nothing behind."""

from server_app.cli.launch.launcher import launch
from server_app.cli.launch.outcome import Outcome

__all__ = ["Outcome", "launch"]
