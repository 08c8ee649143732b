# SPDX-License-Identifier: Apache-2.0
"""How a run ends early."""


class RunFailed(RuntimeError):
    """The run cannot go on; the text says where and why."""


class TooFewClients(RunFailed):
    """Fewer clients than ``min-clients`` are left."""


class Diverged(RunFailed):
    """A client's loss is not finite."""

    def __init__(self, round: int, step: int, client: int, loss: float) -> None:
        super().__init__(
            f"loss is {loss} in round {round}, step {step}, client {client}; the last checkpoint "
            "is intact (try a smaller lr-client or lr-trunk)"
        )


class TrunkLost(RunFailed):
    """The trunk actor died."""
