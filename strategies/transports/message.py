# SPDX-License-Identifier: Apache-2.0
"""Transport ``message``: tensors ride in Flower messages, and the server drives every step.

Works in simulation and on SuperNodes. Two exchanges a step: ``train.finish``, and
``train.absorb`` of step t together with the smashed data of step t + 1.
"""

import math
from collections.abc import Callable, Mapping

from flwr.app import Message

from clients.protocol import (
    WEIGHTS,
    WIRE,
    Action,
    compose,
    metrics_of,
    payload_bytes,
    wire_of,
)
from split import RefusedTensor, WireTensor
from strategies.errors import Diverged
from strategies.exchange import Failure, Reply
from strategies.ledger import SERVER
from strategies.transports.base import RoundWork, Transport, place
from strategies.trunk import Served


class MessageTransport(Transport):
    """Server-driven steps."""

    opening = Action.SMASH
    evaluation_opening = Action.EVALUATE_SMASH

    def train(self, work: RoundWork, openings: Mapping[int, Message]) -> dict[int, Reply]:
        replies = self.ask(work, openings)
        for client, reply in replies.items():
            self._count_opening(work, "train", client, openings[client])
            self._count(work, "train", client, reply, "weights-down", "smashed")
        for step in range(work.steps):
            if not replies:
                break
            replies = self._step(work, step, replies)
            self.on_step(work.round, step + 1, "train")
        for client, reply in replies.items():
            up = payload_bytes(reply.message.content, WEIGHTS)
            work.ledger.add("train", client, "weights-up", nbytes=up, messages=int(up > 0))
        return replies

    def evaluate(
        self, work: RoundWork, split: str, openings: Mapping[int, Message]
    ) -> dict[int, Reply]:
        batches = {c: self.evaluation_steps(c, split) for c in openings}
        replies, totals = self.ask(work, openings), dict[int, Reply]()
        for client, reply in replies.items():
            self._count_opening(work, "evaluate", client, openings[client])
            self._count(work, "evaluate", client, reply, "weights-down", "evaluate-smashed")
        index = 0
        while replies:
            served = self._serve(work, replies, self.trunk.infer)
            requests = {}
            for client, hidden in served.answers.items():
                last = index + 1 == batches[client]
                now = place(work.round, index, batches[client], split=split, last=last)
                requests[client] = self.message(
                    client, Action.EVALUATE_FINISH, compose(config=now, wire=hidden)
                )
                self._sent(work, "evaluate", client, "evaluate-hidden", hidden)
            answers = self.ask(work, requests)
            index += 1
            for client, reply in answers.items():
                ended = index == batches[client]
                up = "" if ended else "evaluate-smashed"
                self._count(work, "evaluate", client, reply, "evaluate-hidden", up)
                if ended:
                    totals[client] = reply
            replies = {c: r for c, r in answers.items() if c not in totals}
            self.on_step(work.round, index, "evaluate")
        return totals

    # -- one step -------------------------------------------------------------------------

    def _step(self, work: RoundWork, step: int, smashed: dict[int, Reply]) -> dict[int, Reply]:
        progress = self.progress(work.round, step, work.steps)
        now = place(work.round, step, work.steps, progress=progress)
        hidden = self._serve(work, smashed, lambda sent: self.trunk.forward(sent, work.round, step))
        asked = tuple(hidden.answers)
        for client, tensor in hidden.answers.items():
            self._sent(work, "train", client, "hidden", tensor)
        gradients = self.ask(
            work,
            {
                client: self.message(client, Action.FINISH, compose(config=now, wire=tensor))
                for client, tensor in hidden.answers.items()
            },
        )
        for client, reply in gradients.items():
            self._count(work, "train", client, reply, "hidden", "hidden-gradient")
            self._note_loss(work, step, client, reply)
        return self._absorb(work, step, asked, gradients, progress) if gradients else {}

    def _absorb(
        self,
        work: RoundWork,
        step: int,
        asked: tuple[int, ...],
        gradients: dict[int, Reply],
        progress: float,
    ) -> dict[int, Reply]:
        answer = self.config.client_weights != "frozen"
        served = self._serve(
            work,
            gradients,
            lambda sent: self.trunk.backward(sent, asked, progress, answer),
        )
        last = step + 1 == work.steps
        now = place(
            work.round, step, work.steps, progress=progress, last=last, run=self.config.run_name
        )
        requests = {}
        for client in sorted(set(gradients) - set(work.failures)):
            tensor = served.answers.get(client)
            if tensor is not None:
                self._sent(work, "train", client, "smashed-gradient", tensor)
            content = compose(config=now, wire=tensor)
            requests[client] = self.message(client, Action.ABSORB, content)
        replies = self.ask(work, requests)
        for client, reply in replies.items():
            down, up = "smashed-gradient" if answer else "", "weights-up" if last else "smashed"
            self._count(work, "train", client, reply, down, up)
        return replies

    def _serve(
        self,
        work: RoundWork,
        replies: Mapping[int, Reply],
        call: Callable[[dict[int, WireTensor]], Served],
    ) -> Served:
        """Have the trunk serve what clients sent; a client whose tensor is refused is dropped."""
        sent = {client: wire_of(reply.message.content) for client, reply in replies.items()}
        while sent:
            try:
                served = call(sent)
            except RefusedTensor as error:
                failure = Failure(error.client, "the trunk's check", str(error))
                work.lose([failure], self.warn)
                del sent[error.client]
                continue
            phase = "evaluate" if work.steps == 0 else "train"
            work.ledger.add(phase, SERVER, "trunk-compute", seconds=served.ended - served.began)
            return served
        return Served({}, 0.0, 0.0)

    # -- the ledger -----------------------------------------------------------------------

    def _sent(self, work: RoundWork, phase: str, client: int, leg: str, wire: WireTensor) -> None:
        work.ledger.add(phase, client, leg, nbytes=wire.nbytes, images=len(wire.payload))

    def _count_opening(self, work: RoundWork, phase: str, client: int, opening: Message) -> None:
        down = payload_bytes(opening.content, WEIGHTS)
        work.ledger.add(phase, client, "weights-down", nbytes=down, messages=int(down > 0))

    def _count(
        self, work: RoundWork, phase: str, client: int, reply: Reply, down: str, up: str
    ) -> None:
        told = metrics_of(reply.message.content)
        work.ledger.add_exchange(phase, client, reply, told, down, up)
        if up and not up.startswith("weights"):
            nbytes = payload_bytes(reply.message.content, WIRE)
            work.ledger.add(phase, client, up, nbytes=nbytes, images=int(told["images"]))

    def _note_loss(self, work: RoundWork, step: int, client: int, reply: Reply) -> None:
        told = metrics_of(reply.message.content)
        loss = float(told["loss"])
        if not math.isfinite(loss):
            raise Diverged(work.round, step, client, loss)
        work.note_loss(client, loss, int(told["images"]))
