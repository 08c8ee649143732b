# SPDX-License-Identifier: Apache-2.0
"""What a round cost: bytes and seconds of each leg, for each client."""

from collections import defaultdict
from dataclasses import dataclass

from clients.protocol import Fields
from strategies.exchange import Reply

DIRECTIONS = {
    "smashed": "up",
    "hidden": "down",
    "hidden-gradient": "up",
    "smashed-gradient": "down",
    "weights-up": "up",
    "weights-down": "down",
    "evaluate-smashed": "up",
    "evaluate-hidden": "down",
    "client-compute": "none",
    "trunk-compute": "none",
}
"""Every leg and its direction, seen from the client."""

SERVER = -1


@dataclass
class _Entry:
    bytes: int = 0
    seconds: float = 0.0
    messages: int = 0
    images: int = 0


class Ledger:
    """Counts one round; :meth:`rows` gives it as rows of the run's ledger table."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, int, str], _Entry] = defaultdict(_Entry)

    def add(
        self,
        phase: str,
        client: int,
        leg: str,
        *,
        nbytes: int = 0,
        seconds: float = 0.0,
        messages: int = 1,
        images: int = 0,
    ) -> None:
        """Count a tensor on its way, or a piece of work. Seconds include queueing."""
        entry = self._entries[phase, client, leg]
        entry.bytes += nbytes
        entry.seconds += max(seconds, 0.0)
        entry.messages += messages
        entry.images += images

    def add_exchange(
        self, phase: str, client: int, reply: Reply, told: Fields, down: str, up: str
    ) -> None:
        """Split the seconds of an exchange by the client's own times of receiving and replying."""
        received, replied = float(told["received-at"]), float(told["replied-at"])
        if down:
            self.add(phase, client, down, seconds=received - reply.sent, messages=0)
        self.add(phase, client, "client-compute", seconds=replied - received)
        if up:
            self.add(phase, client, up, seconds=reply.arrived - replied, messages=0)

    def add_legs(self, phase: str, client: int, told: Fields) -> None:
        """Take over what a client counted of its own calls to the trunk."""
        for leg in DIRECTIONS:
            if f"{leg}/messages" in told:
                self.add(
                    phase,
                    client,
                    leg,
                    nbytes=int(told[f"{leg}/bytes"]),
                    seconds=float(told[f"{leg}/seconds"]),
                    messages=int(told[f"{leg}/messages"]),
                    images=int(told[f"{leg}/images"]),
                )

    def rows(self, round: int) -> list[dict[str, object]]:
        """One row for each phase, client and leg."""
        return [
            {
                "round": round,
                "client": client,
                "leg": leg,
                "phase": phase,
                "direction": DIRECTIONS[leg],
                "bytes": entry.bytes,
                "seconds": entry.seconds,
                "messages": entry.messages,
                "images": entry.images,
            }
            for (phase, client, leg), entry in sorted(self._entries.items())
        ]
