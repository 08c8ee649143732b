# SPDX-License-Identifier: Apache-2.0
"""All schedules by name, and what a configuration may ask of them."""

from collections.abc import Iterator

from config import Problem, RunConfig
from strategies.base import SplitStrategy
from strategies.parallel import Parallel
from strategies.sequential import Sequential
from strategies.splitfed_v1 import SplitFedV1
from strategies.splitfed_v2 import SplitFedV2

SCHEDULES: dict[str, type[SplitStrategy]] = {
    cls.name: cls for cls in (Sequential, Parallel, SplitFedV1, SplitFedV2)
}


def check_schedule(config: RunConfig) -> Iterator[Problem]:
    """Problems of the schedule keys: a rule for ``parse_run_config``."""
    schedule = SCHEDULES.get(config.schedule)
    if schedule is None:
        yield Problem("schedule", config.schedule, f"allowed are {', '.join(sorted(SCHEDULES))}")
    elif config.transport not in schedule.transports:
        served = " or ".join(f'"{name}"' for name in schedule.transports)
        fitting = ", ".join(
            name for name, one in sorted(SCHEDULES.items()) if config.transport in one.transports
        )
        yield Problem(
            "transport",
            config.transport,
            f'schedule = "{config.schedule}" needs transport = {served} '
            f"({config.transport} serves {fitting})",
        )
