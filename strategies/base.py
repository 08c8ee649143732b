# SPDX-License-Identifier: Apache-2.0
"""A split-learning strategy: what a round is. Each schedule is a subclass in a file of its own."""

import time
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from logging import INFO
from typing import ClassVar, Protocol

from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.common.logger import log
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy
from torch import Tensor

from clients.data import ATTRIBUTES
from clients.protocol import WEIGHTS, Action, Value, compose, metrics_of, weights_of
from config import RunConfig
from split import weighted_mean
from split.trunk_step import Sharing
from strategies.evaluation import ALL_CLIENTS, Counts, utility_rows
from strategies.exchange import Exchange, Reply
from strategies.roster import Roster
from strategies.transports import TRANSPORTS, RoundWork, Transport
from strategies.trunk import TrunkHandle

Row = dict[str, object]
"""A row of one of the run's tables."""


@dataclass
class RunState:
    """What the server needs to go on after a round, beside the trunk.

    Parameters
    ----------
    round : int
        The last completed round; 0: none.
    weights : dict
        The averaged weights of edge and tail; empty where they are not averaged.
    finished : dict
        For each client the last round that it completed.
    """

    round: int = 0
    weights: dict[str, Tensor] = field(default_factory=dict)
    finished: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class RoundResult:
    """A completed round: rows for the run's tables, and the state to go on from."""

    state: RunState
    metrics: list[Row]
    ledger: list[Row]


class Observer(Protocol):
    """Who follows a run: writes tables and checkpoints, shows progress."""

    def step(self, round: int, step: int, phase: str) -> None:
        """A step is done."""

    def warn(self, text: str) -> None:
        """A client failed."""

    def round(self, result: RoundResult) -> None:
        """A round is completed."""


class SplitStrategy(Strategy):
    """Base of the schedules, a Flower ``Strategy``.

    A subclass says in which groups the clients of a round meet the trunk (:meth:`groups`), and
    whether they share one (``sharing``). Groups train one after another, the clients of a group
    side by side.

    Parameters
    ----------
    config : RunConfig
    roster : Roster
    trunk : TrunkHandle
    observer : Observer
    steps : int
        Steps of each client in a round.
    state : RunState
        Where to start.
    """

    name: ClassVar[str]
    sharing: ClassVar[Sharing] = "shared"
    transports: ClassVar[tuple[str, ...]] = ("message", "ray")

    def __init__(
        self,
        config: RunConfig,
        roster: Roster,
        trunk: TrunkHandle,
        observer: Observer,
        *,
        steps: int,
        state: RunState,
    ) -> None:
        self.config, self.roster, self.trunk, self.observer = config, roster, trunk, observer
        self.steps, self.state = steps, state
        self.transport_class = TRANSPORTS[config.transport]
        self._exchange: Exchange | None = None

    @abstractmethod
    def groups(self, round: int, participants: tuple[int, ...]) -> list[tuple[int, ...]]:
        """The groups of a round, in the order in which they meet the trunk."""

    # -- Flower's steps of a round ----------------------------------------------------------

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """The messages that open the round, one for each sampled client."""
        busy = self._exchange_on(grid).busy()
        action, steps = self.transport_class.opening, self.steps
        return [
            self._opening(client, server_round, arrays, action, steps=steps)
            for client in self.roster.sample(self.config, server_round, busy)
        ]

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """The mean of the clients' weights, by their ``num-examples``; None if none were sent."""
        contents = {self._client_of(r): r.content for r in replies if r.has_content()}
        examples = {c: float(metrics_of(one)["num-examples"]) for c, one in contents.items()}
        weights = {c: w for c, one in contents.items() if (w := weights_of(one)) is not None}
        mean = _arrays(weighted_mean(weights, examples)) if weights else None
        return mean, MetricRecord({"num-examples": sum(examples.values())})

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """The messages that open an evaluation on ``config["split"]``, to all who hold images."""
        split = str(config["split"])
        busy = self._exchange_on(grid).busy()
        action, batch = self.transport_class.evaluation_opening, self.config.evaluate_batch_size
        return [
            self._opening(
                client, server_round, arrays, action, steps=-(-images // batch), split=split
            )
            for client in self.roster.members
            if client not in busy and (images := self.roster.images(split, client))
        ]

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """Mean accuracy, balanced accuracy, floor and loss over all clients' images."""
        counts = [Counts.of(metrics_of(reply.content)) for reply in replies if reply.has_content()]
        if not counts:
            return None
        pooled = Counts.pooled(counts)
        return MetricRecord(
            {
                "loss": pooled.loss,
                "accuracy": float(pooled.accuracy().mean()),
                "balanced-accuracy": float(pooled.balanced_accuracy().mean()),
                "floor": float(pooled.floor().mean()),
                "num-examples": pooled.images,
            }
        )

    def summary(self) -> None:
        """Say what is about to run."""
        groups = self.groups(1, tuple(self.roster.members))
        log(
            INFO,
            "schedule %s over transport %s: %d clients in %d groups, %d steps a round",
            self.name,
            self.config.transport,
            len(self.roster.members),
            len(groups),
            self.steps,
        )

    # -- the whole run ----------------------------------------------------------------------

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord | None = None,
        num_rounds: int = 3,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: object = None,
    ) -> Result:
        """Train from the state's round to ``num_rounds``.

        Each round: open it with the sampled clients, let the groups meet the trunk, average what
        the clients send, evaluate (validation every ``evaluate-every`` rounds, and both
        validation and test after the last), and hand the round to the observer.

        Parameters
        ----------
        grid : Grid
        initial_arrays : ArrayRecord, optional
            Averaged weights to start from; by default those of the state, and if it has none
            each client starts from the model's own first weights.
        num_rounds : int
            The last round.
        timeout, train_config, evaluate_config, evaluate_fn
            Of Flower's signature; the run's configuration rules instead.

        Raises
        ------
        TooFewClients, Diverged, TrunkLost
        """
        self.summary()
        result = Result(arrays=initial_arrays or _arrays(self.state.weights))
        for round in range(self.state.round + 1, num_rounds + 1):
            result.arrays, result.train_metrics_clientapp[round], rows, work = self._train(
                grid, round, result.arrays
            )
            for split in self._evaluated_splits(round, num_rounds):
                told, utility = self._evaluate(grid, round, result.arrays, split, work)
                rows += utility
                if told is not None:
                    result.evaluate_metrics_clientapp[round] = told
            self.observer.round(RoundResult(self.state, rows, work.ledger.rows(round)))
        return result

    def _train(
        self, grid: Grid, round: int, arrays: ArrayRecord
    ) -> tuple[ArrayRecord, MetricRecord, list[Row], RoundWork]:
        began = time.perf_counter()
        opened = {
            self._client_to(message): message
            for message in self.configure_train(round, arrays, ConfigRecord(), grid)
        }
        participants = tuple(sorted(opened))
        work = RoundWork(round, self.steps, participants, self.config.min_clients)
        recorded = self.config.record_traffic if round == self.config.rounds else 0
        self.trunk.begin_round(participants, recorded)
        transport = self._transport(grid)
        replies: dict[int, Reply] = {}
        for group in self.groups(round, participants):
            replies |= transport.train(work, {client: opened[client] for client in group})
        self.trunk.end_round({client: float(work.images(client)) for client in replies})
        mean, metrics = self.aggregate_train(round, [r.message for r in replies.values()])
        self.state = RunState(
            round,
            _tensors(mean) if mean is not None else {},
            {**self.state.finished, **dict.fromkeys(replies, round)},
        )
        rows = self._training_rows(work, time.perf_counter() - began)
        assert metrics is not None
        metrics["loss"] = float(str(rows[0]["value"]))
        return mean if mean is not None else arrays, metrics, rows, work

    def _evaluate(
        self, grid: Grid, round: int, arrays: ArrayRecord, split: str, train: RoundWork
    ) -> tuple[MetricRecord | None, list[Row]]:
        opened = self.configure_evaluate(round, arrays, ConfigRecord({"split": split}), grid)
        openings = {self._client_to(message): message for message in opened}
        work = RoundWork(round, 0, tuple(openings), 0, ledger=train.ledger)
        replies = self._transport(grid).evaluate(work, split, openings)
        if not replies:
            return None, []
        counts = {c: Counts.of(metrics_of(r.message.content)) for c, r in replies.items()}
        told = self.aggregate_evaluate(round, [reply.message for reply in replies.values()])
        rows = utility_rows(counts, round=round, split=split, attributes=ATTRIBUTES)
        return told, rows

    # -- inside -----------------------------------------------------------------------------

    def _evaluated_splits(self, round: int, last: int) -> tuple[str, ...]:
        if round == last:
            return ("validation", "test")
        every = self.config.evaluate_every
        return ("validation",) if every and round % every == 0 else ()

    def _opening(
        self, client: int, round: int, arrays: ArrayRecord, action: Action, **more: Value
    ) -> Message:
        """A message that opens a round or an evaluation, with the averaged weights if any."""
        config: dict[str, Value] = {
            "round": round,
            "step": 0,
            "run": self.config.run_name,
            "restore": self.state.finished.get(client, 0),
            "actor": self.trunk.name,
            **more,
        }
        content = compose(config=config)
        if arrays:
            content[WEIGHTS] = arrays
        return Message(content, self.roster.node(client), action.value)

    def _exchange_on(self, grid: Grid) -> Exchange:
        if self._exchange is None or self._exchange.grid is not grid:
            self._exchange = Exchange(grid, self.config.step_timeout)
        return self._exchange

    def _transport(self, grid: Grid) -> Transport:
        return self.transport_class(
            self.config,
            self._exchange_on(grid),
            self.roster,
            self.trunk,
            self.observer.step,
            self.observer.warn,
        )

    def _client_of(self, reply: Message) -> int:
        return self.roster.client(reply.metadata.src_node_id)

    def _client_to(self, request: Message) -> int:
        return self.roster.client(request.metadata.dst_node_id)

    def _training_rows(self, work: RoundWork, seconds: float) -> list[Row]:
        """Loss over all and per client, seconds and images a second of the round."""
        losses = {
            client: (sum(loss * n for loss, n in pairs), sum(n for _, n in pairs))
            for client, pairs in sorted(work.losses.items())
        }
        images = sum(n for _, n in losses.values())
        whole = sum(total for total, _ in losses.values()) / max(images, 1)

        def row(client: int, metric: str, value: float, count: int) -> Row:
            return {
                "round": work.round,
                "split": "train",
                "client": client,
                "attribute": "mean" if metric == "loss" else "",
                "metric": metric,
                "value": value,
                "count": count,
            }

        return [
            row(ALL_CLIENTS, "loss", whole, images),
            *(row(client, "loss", total / n, n) for client, (total, n) in losses.items()),
            row(ALL_CLIENTS, "seconds", seconds, images),
            row(ALL_CLIENTS, "images_per_second", images / seconds, images),
        ]


def _arrays(weights: Mapping[str, Tensor]) -> ArrayRecord:
    return ArrayRecord({name: Array(tensor.numpy()) for name, tensor in weights.items()})


def _tensors(arrays: ArrayRecord) -> dict[str, Tensor]:
    return dict(arrays.to_torch_state_dict())
