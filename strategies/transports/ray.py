# SPDX-License-Identifier: Apache-2.0
"""Transport ``ray``: one Flower message per round; inside it the client calls the trunk actor.

Simulation and Ray clusters only: client and trunk must share one Ray.
"""

from collections.abc import Mapping

from flwr.app import Message

from clients.protocol import WEIGHTS, Action, metrics_of, payload_bytes
from strategies.errors import Diverged
from strategies.exchange import Reply
from strategies.transports.base import RoundWork, Transport


class RayTransport(Transport):
    """Client-driven rounds."""

    opening = Action.ROUND
    evaluation_opening = Action.EVALUATE_ROUND

    def train(self, work: RoundWork, openings: Mapping[int, Message]) -> dict[int, Reply]:
        replies = self.ask(work, openings)
        for client, reply in replies.items():
            told = metrics_of(reply.message.content)
            if "diverged-step" in told:
                raise Diverged(work.round, int(told["diverged-step"]), client, float(told["loss"]))
            work.note_loss(client, float(told["loss"]), int(told["images"]))
            for leg, content in (
                ("weights-down", openings[client].content),
                ("weights-up", reply.message.content),
            ):
                nbytes = payload_bytes(content, WEIGHTS)
                work.ledger.add("train", client, leg, nbytes=nbytes, messages=int(nbytes > 0))
            self._count(work, "train", client, reply)
        self.on_step(work.round, work.steps, "train")
        return replies

    def evaluate(
        self, work: RoundWork, split: str, openings: Mapping[int, Message]
    ) -> dict[int, Reply]:
        replies = self.ask(work, openings)
        for client, reply in replies.items():
            down = payload_bytes(openings[client].content, WEIGHTS)
            work.ledger.add("evaluate", client, "weights-down", nbytes=down, messages=int(down > 0))
            self._count(work, "evaluate", client, reply)
        self.on_step(work.round, 1, "evaluate")
        return replies

    def _count(self, work: RoundWork, phase: str, client: int, reply: Reply) -> None:
        """The client's own legs, and its work: its time less what it waited for the trunk."""
        told = metrics_of(reply.message.content)
        work.ledger.add_legs(phase, client, told)
        waited = sum(float(v) for k, v in told.items() if k.endswith("/seconds"))
        whole = float(told["replied-at"]) - float(told["received-at"])
        work.ledger.add(phase, client, "client-compute", seconds=whole - waited)
        down = float(told["received-at"]) - reply.sent
        work.ledger.add(phase, client, "weights-down", seconds=down, messages=0)
        up = reply.arrived - float(told["replied-at"])
        work.ledger.add(phase, client, "weights-up", seconds=up, messages=0)
