# SPDX-License-Identifier: Apache-2.0
"""What both transports share: the work of a round, and what becomes of clients that fail."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from flwr.app import Message, RecordDict

from clients.protocol import Action, Value
from config import RunConfig
from strategies.errors import TooFewClients
from strategies.exchange import Exchange, Failure, Reply
from strategies.ledger import Ledger
from strategies.roster import Roster
from strategies.trunk import TrunkHandle


@dataclass
class RoundWork:
    """A round under way.

    Parameters
    ----------
    round, steps : int
        Its number (from 1), and the steps of each client in it.
    participants : tuple of int
        The clients sampled.
    minimum : int
        The fewest clients that must remain.
    """

    round: int
    steps: int
    participants: tuple[int, ...]
    minimum: int
    ledger: Ledger = field(default_factory=Ledger)
    failures: dict[int, Failure] = field(default_factory=dict)
    losses: dict[int, list[tuple[float, int]]] = field(default_factory=dict)

    def lose(self, failures: Iterable[Failure], say: Callable[[str], None]) -> None:
        """Drop clients from the round.

        Raises
        ------
        TooFewClients
            If fewer than the minimum remain.
        """
        for failure in failures:
            self.failures[failure.client] = failure
            say(f"round {self.round}: {failure}\nclient {failure.client} is out of this round")
        left = len(self.participants) - len(self.failures)
        if left < self.minimum:
            told = "\n".join(str(failure) for failure in self.failures.values())
            raise TooFewClients(
                f"round {self.round}: {left} of {len(self.participants)} clients are left, "
                f"min-clients = {self.minimum}; what happened:\n{told}"
            )

    def note_loss(self, client: int, loss: float, images: int) -> None:
        """Remember a client's mean loss over some images."""
        self.losses.setdefault(client, []).append((loss, images))

    def images(self, client: int) -> int:
        """Images that a client has trained on in this round."""
        return sum(images for _, images in self.losses.get(client, ()))


class Transport(ABC):
    """How tensors travel between clients and trunk.

    Parameters
    ----------
    config : RunConfig
    exchange : Exchange
    roster : Roster
    trunk : TrunkHandle
    on_step : callable
        Called with (round, step, phase) whenever a step is done.
    warn : callable
        Called with what became of a client that failed.

    Attributes
    ----------
    opening, evaluation_opening : Action
        The message that opens a round, and an evaluation.
    """

    opening: ClassVar[Action]
    evaluation_opening: ClassVar[Action]

    def __init__(
        self,
        config: RunConfig,
        exchange: Exchange,
        roster: Roster,
        trunk: TrunkHandle,
        on_step: Callable[[int, int, str], None],
        warn: Callable[[str], None],
    ) -> None:
        self.config, self.exchange, self.roster, self.trunk = config, exchange, roster, trunk
        self.on_step, self.warn = on_step, warn

    @abstractmethod
    def train(self, work: RoundWork, openings: Mapping[int, Message]) -> dict[int, Reply]:
        """Train one group of clients that run side by side; returns their last replies."""

    @abstractmethod
    def evaluate(
        self, work: RoundWork, split: str, openings: Mapping[int, Message]
    ) -> dict[int, Reply]:
        """Evaluate clients; returns the replies with their totals."""

    def evaluation_steps(self, client: int, split: str) -> int:
        """Evaluation batches of a client."""
        return -(-self.roster.images(split, client) // self.config.evaluate_batch_size)

    def progress(self, round: int, step: int, steps: int) -> float:
        """Share of the run that is done at a step."""
        return (round - 1 + step / steps) / self.config.rounds

    def message(self, client: int, action: Action, content: RecordDict) -> Message:
        """A request to one client."""
        return Message(content, self.roster.node(client), action.value)

    def ask(self, work: RoundWork, requests: Mapping[int, Message]) -> dict[int, Reply]:
        """One exchange; clients that fail are dropped from the round."""
        replies, failures = self.exchange.ask(requests)
        if failures:
            # A client that calls the trunk itself is the first to see that it is gone.
            self.trunk.check()
            work.lose(failures.values(), self.warn)
        return dict(sorted(replies.items()))


def place(round: int, step: int, steps: int, **more: Value) -> dict[str, Value]:
    """The config of a training request."""
    return {"round": round, "step": step, "steps": steps, **more}
