# SPDX-License-Identifier: Apache-2.0
"""Sweeps: many runs of one study, each a trial, that survive failures and killed machines."""

from server_app.sweep.commands import Launch, command
from server_app.sweep.definition import SweepDefinition, load_sweep, parse_sweep
from server_app.sweep.errors import SweepError
from server_app.sweep.execute import Running, Watcher, run_trials
from server_app.sweep.jobs import Job, StartJob, process_starter
from server_app.sweep.lock import only_sweep_in
from server_app.sweep.standing import Step, differences, missing_attackers, next_step
from server_app.sweep.table import Row, TrialTable
from server_app.sweep.trials import Trial, plan_trials

__all__ = [
    "Job",
    "Launch",
    "Row",
    "Running",
    "StartJob",
    "Step",
    "SweepDefinition",
    "SweepError",
    "Trial",
    "TrialTable",
    "Watcher",
    "command",
    "differences",
    "load_sweep",
    "missing_attackers",
    "next_step",
    "only_sweep_in",
    "parse_sweep",
    "plan_trials",
    "process_starter",
    "run_trials",
]
