# SPDX-License-Identifier: Apache-2.0
"""A federation in one process: the real ClientApp and strategies, without Flower's engine or Ray.

``LocalGrid`` hands each message to the ClientApp at once and keeps a copy of all that passed;
contexts are pickled between messages, as Flower does. ``LocalTrunk`` is a ``TrunkStep`` behind the
strategies' interface.
"""

import pickle
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import torch
from flwr.app import Context, Message, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

from clients.app import app as client_app
from config import RunConfig, parse_run_config
from server_app.checks import RULES
from server_app.run import steps_per_round, trunk_spec
from split import TrunkStep, WireTensor
from strategies import SCHEDULES, RoundResult, RunState, Served, SplitStrategy, call_roll

TINY: dict[str, object] = {
    "data": "synthetic:240",
    "image-size": 16,
    "patch-size": 4,
    "dim": 16,
    "depth": 2,
    "heads": 2,
    "auxiliary": 0.0,
    "rounds": 2,
    "steps-per-round": 2,
    "batch-size": 6,
    "evaluate-batch-size": 16,
    "evaluate-every": 0,
    "optimizer": "sgd",
    "lr-client": 0.1,
    "lr-trunk": 0.1,
    "lr-client-end": 0.01,
    "lr-trunk-end": 0.01,
    "weight-decay": 5e-4,
    "permute": "none",
    "min-clients": 1,
    "step-timeout": 5.0,
    "start-timeout": 5.0,
    "run-name": "test",
}
"""A run of seconds: 16-pixel synthetic faces, a ViT of two blocks."""

Sabotage = Callable[[int, Message], str | None]
"""Given (client, request): None to serve it, ``"silent"`` for no reply, ``"dead"`` to raise."""


def tiny_config(tmp_path: object, **keys: object) -> RunConfig:
    """``TINY`` with changes; ``steps_per_round=3`` sets ``steps-per-round``."""
    changes = {name.rstrip("_").replace("_", "-"): value for name, value in keys.items()}
    places = {"runs-dir": f"{tmp_path}/runs", "state-dir": f"{tmp_path}/client-state"}
    return parse_run_config({**TINY, **places, **changes}, rules=RULES)


class LocalGrid(Grid):
    """Flower's grid in one process.

    Parameters
    ----------
    config : RunConfig
    clients : int
    sabotage : callable, optional
        What goes wrong.

    Attributes
    ----------
    traffic : list of (int, str, RecordDict)
        Client, direction and action, content of every message that passed.
    """

    def __init__(self, config: RunConfig, clients: int, sabotage: Sabotage | None = None) -> None:
        # Flower's engine sets who sends a message; here it is the server of run 1.
        TaskIdentity.run_id, TaskIdentity.task_id, TaskIdentity.node_id = 1, 1, 1
        self.sabotage = sabotage or (lambda client, message: None)
        self.traffic: list[tuple[int, str, RecordDict]] = []
        self._waiting: dict[str, Message] = {}
        values = config.model_dump(by_alias=True)
        # Node ids say nothing of partitions.
        self._contexts = {
            1000 + 17 * (clients - client): pickle.dumps(
                Context(
                    run_id=1,
                    node_id=1000 + 17 * (clients - client),
                    node_config={"partition-id": client, "num-partitions": clients},
                    state=RecordDict(),
                    run_config=values,
                )
            )
            for client in range(clients)
        }

    def client(self, node: int) -> int:
        """The partition id of a node."""
        return int(pickle.loads(self._contexts[node]).node_config["partition-id"])

    def context(self, client: int) -> Context:
        """A copy of a client's context."""
        node = next(node for node in self._contexts if self.client(node) == client)
        return pickle.loads(self._contexts[node])

    def set_run(self, run: object) -> None:
        raise NotImplementedError

    @property
    def run(self) -> object:
        raise NotImplementedError

    def create_message(self, *args: object, **kwargs: object) -> Message:
        raise NotImplementedError

    def get_node_ids(self) -> Iterable[int]:
        return list(self._contexts)

    def get_nodes(self) -> Iterable[object]:
        raise NotImplementedError

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        return [self._serve(message) for message in messages]

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return [self._waiting.pop(i) for i in list(message_ids) if i in self._waiting]

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> object:
        raise NotImplementedError

    def _serve(self, message: Message) -> str:
        message_id = str(uuid.uuid4())
        message.metadata.__dict__["_message_id"] = message_id
        node = message.metadata.dst_node_id
        client, action = self.client(node), message.metadata.message_type
        self.traffic.append((client, f"down {action}", message.content))
        harm = self.sabotage(client, message)
        if harm == "silent":
            return message_id
        context = pickle.loads(self._contexts[node])
        if harm == "dead":
            message.content.config_records.clear()
        reply = client_app(message, context)
        if reply.has_content():
            self.traffic.append((client, f"up {action}", reply.content))
            self._contexts[node] = pickle.dumps(context)
        self._waiting[message_id] = reply
        return message_id


class LocalTrunk:
    """A trunk in this process."""

    name = "local"

    def __init__(self, step: TrunkStep) -> None:
        self.step = step

    def forward(self, smashed: Mapping[int, WireTensor], round: int, step: int) -> Served:
        began = time.time()
        answers = self.step.forward(smashed, round=round, step=step)
        return Served(answers, began, time.time())

    def backward(
        self,
        gradients: Mapping[int, WireTensor],
        clients: tuple[int, ...],
        progress: float,
        answer: bool,
    ) -> Served:
        began = time.time()
        answers = self.step.backward(gradients, clients=clients, progress=progress)
        return Served(answers if answer else {}, began, time.time())

    def infer(self, smashed: Mapping[int, WireTensor]) -> Served:
        began = time.time()
        return Served(self.step.infer(smashed), began, time.time())

    def check(self) -> None:
        """It is there."""

    def begin_round(self, clients: tuple[int, ...], record_steps: int) -> None:
        self.step.begin_round(clients)

    def end_round(self, weights: Mapping[int, float]) -> None:
        self.step.end_round(weights)


@dataclass
class Witness:
    """An observer that keeps all it is told."""

    rounds: list[RoundResult] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    steps: list[tuple[int, int, str]] = field(default_factory=list)

    def step(self, round: int, step: int, phase: str) -> None:
        self.steps.append((round, step, phase))

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def round(self, result: RoundResult) -> None:
        self.rounds.append(result)

    def value(
        self, metric: str, *, split: str = "train", round: int = -1, client: int = -1
    ) -> float:
        """One mean of one round (by default of the last)."""
        return next(
            float(str(row["value"]))
            for row in self.rounds[round].metrics
            if (row["metric"], row["split"], row["client"]) == (metric, split, client)
            and row["attribute"] in ("mean", "")
        )


@dataclass
class Federation:
    """A local run, ready to start."""

    config: RunConfig
    grid: LocalGrid
    trunk: LocalTrunk
    witness: Witness
    strategy: SplitStrategy

    def train(self) -> "Federation":
        """Run all rounds."""
        self.strategy.start(self.grid, num_rounds=self.config.rounds)
        return self

    def weights(self) -> dict[str, torch.Tensor]:
        """All weights under timm's names: the trunk's and the averaged ones of edge and tail."""
        named = {
            name.removeprefix("edge/vit.").removeprefix("tail/"): tensor
            for name, tensor in self.strategy.state.weights.items()
        }
        return {**named, **self.trunk.step.state()[0]}


def federate(
    config: RunConfig,
    clients: int,
    *,
    sabotage: Sabotage | None = None,
    weights: Mapping[str, torch.Tensor] | None = None,
    state: RunState | None = None,
) -> Federation:
    """Set up a local run of ``clients`` clients."""
    schedule = SCHEDULES[config.schedule]
    grid = LocalGrid(config, clients, sabotage)
    roster = call_roll(grid, config)
    trunk = LocalTrunk(TrunkStep(trunk_spec(config, schedule), torch.device("cpu"), weights))
    witness = Witness()
    steps = steps_per_round(config, roster)
    strategy = schedule(config, roster, trunk, witness, steps=steps, state=state or RunState())
    return Federation(config, grid, trunk, witness, strategy)
