# SPDX-License-Identifier: Apache-2.0
"""Schedule ``splitfed-v1``: a trunk for each client, averaged each round.

After "SplitFed: When Federated Learning Meets Split Learning" (Thapa et al., AAAI 2022), SFLV1.
"""

from strategies.base import SplitStrategy


class SplitFedV1(SplitStrategy):
    """Clients side by side, each against its own copy; copies are averaged by images trained on."""

    name = "splitfed-v1"
    sharing = "own"

    def groups(self, round: int, participants: tuple[int, ...]) -> list[tuple[int, ...]]:
        return [participants]
