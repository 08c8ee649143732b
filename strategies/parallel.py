# SPDX-License-Identifier: Apache-2.0
"""Schedule ``parallel``: the batches of all clients in a step meet the trunk as one batch."""

from strategies.base import SplitStrategy


class Parallel(SplitStrategy):
    """N clients of batch B are one model on batch N * B, as far as the trunk can tell.

    Every step waits for all clients, so the server must drive the steps: transport ``message``.
    (In transport ``ray`` a client holds a worker for its whole round, and clients that wait for
    a worker would never join the step.)
    """

    name = "parallel"
    transports = ("message",)

    def groups(self, round: int, participants: tuple[int, ...]) -> list[tuple[int, ...]]:
        return [participants]
