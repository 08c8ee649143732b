# SPDX-License-Identifier: Apache-2.0
"""All attackers by name."""

from collections.abc import Iterator

from config import Problem, RunConfig

ATTACKERS: dict[str, type] = {}


def check_attackers(config: RunConfig) -> Iterator[Problem]:
    """Problems of the key ``attack``: a rule for ``parse_run_config``."""
    wanted = [name.strip() for name in config.attack.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in ATTACKERS]
    if unknown:
        allowed = (
            f"a comma list of {', '.join(sorted(ATTACKERS))}" if ATTACKERS else '"" (none yet)'
        )
        yield Problem(
            "attack", config.attack, f"unknown: {', '.join(unknown)}; allowed is {allowed}"
        )
