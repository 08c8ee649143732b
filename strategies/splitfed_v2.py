# SPDX-License-Identifier: Apache-2.0
"""Schedule ``splitfed-v2``: one trunk, clients in random order.

After "SplitFed: When Federated Learning Meets Split Learning" (Thapa et al., AAAI 2022), SFLV2.
"""

import numpy as np

from split import derive_seed
from strategies.base import SplitStrategy


class SplitFedV2(SplitStrategy):
    """As ``sequential``, in an order drawn anew for each round from the run's seed."""

    name = "splitfed-v2"

    def groups(self, round: int, participants: tuple[int, ...]) -> list[tuple[int, ...]]:
        rng = np.random.default_rng(derive_seed(self.config.seed, "schedule", round))
        return [(int(client),) for client in rng.permutation(participants)]
