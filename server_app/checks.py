# SPDX-License-Identifier: Apache-2.0
"""Everything that can be wrong with a run, found before any work starts."""

from attacks import LEAST_PEOPLE, check_attackers
from clients.data import DataError, check_source
from clients.defences import check_defences
from clients.owner import data_spec
from config import Problem, Rule, RunConfig
from split import check_model
from strategies import check_schedule

RULES: tuple[Rule, ...] = (check_model, check_defences, check_schedule, check_attackers)
"""The rules of the packages that own a registry, for ``config.parse_run_config``."""


def check_data(config: RunConfig, clients: int) -> list[Problem]:
    """What is wrong with the data source of a run, for this number of clients.

    Reads tables and lists folders; pictures are decoded by the clients, before they train.
    """
    try:
        found = check_source(data_spec(config), num_partitions=clients)
    except DataError as error:
        told = str(error).removeprefix(f"data = {config.data!r}: ")
        return [Problem("data", config.data, told)]
    if config.attack and config.auxiliary and found.identities["auxiliary"] < LEAST_PEOPLE:
        allowed = (
            f"it leaves {found.images['auxiliary']} images for the attackers, "
            f"who need those of {LEAST_PEOPLE} people at least"
        )
        return [Problem("auxiliary", config.auxiliary, allowed)]
    return []
