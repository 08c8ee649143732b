# SPDX-License-Identifier: Apache-2.0
"""Schedule ``sequential``: clients in turn share one trunk."""

from strategies.base import SplitStrategy


class Sequential(SplitStrategy):
    """Each client does all its steps of the round before the next one starts, in fixed order."""

    name = "sequential"

    def groups(self, round: int, participants: tuple[int, ...]) -> list[tuple[int, ...]]:
        return [(client,) for client in participants]
