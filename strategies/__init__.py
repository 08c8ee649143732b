# SPDX-License-Identifier: Apache-2.0
"""Flower strategies for split learning, one schedule per file, over two transports."""

from strategies.base import Observer, RoundResult, RunState, SplitStrategy
from strategies.errors import Diverged, RunFailed, TooFewClients, TrunkLost
from strategies.parallel import Parallel
from strategies.registry import SCHEDULES, check_schedule
from strategies.roster import Member, Roster, call_roll
from strategies.sequential import Sequential
from strategies.splitfed_v1 import SplitFedV1
from strategies.splitfed_v2 import SplitFedV2
from strategies.trunk import Served, TrunkHandle

__all__ = [
    "SCHEDULES",
    "Diverged",
    "Member",
    "Observer",
    "Parallel",
    "Roster",
    "RoundResult",
    "RunFailed",
    "RunState",
    "Sequential",
    "Served",
    "SplitFedV1",
    "SplitFedV2",
    "SplitStrategy",
    "TooFewClients",
    "TrunkHandle",
    "TrunkLost",
    "call_roll",
    "check_schedule",
]
