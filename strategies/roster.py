# SPDX-License-Identifier: Apache-2.0
"""Who takes part: the clients by partition id, and which of them a round samples."""

import math
import time
from dataclasses import dataclass

import numpy as np
from flwr.app import Message
from flwr.serverapp import Grid

from clients.protocol import Action, compose, metrics_of
from config import RunConfig
from split import derive_seed
from strategies.errors import RunFailed, TooFewClients
from strategies.exchange import Exchange


@dataclass(frozen=True)
class Member:
    """A client: its Flower node and how many images of each split it holds."""

    client: int
    node: int
    train: int
    validation: int
    test: int


@dataclass(frozen=True)
class Roster:
    """All clients of a run, by partition id (node ids are random: nothing derives from them)."""

    members: dict[int, Member]

    def node(self, client: int) -> int:
        """The Flower node of a client."""
        return self.members[client].node

    def client(self, node: int) -> int:
        """The client on a Flower node."""
        return next(client for client, member in self.members.items() if member.node == node)

    def images(self, split: str, client: int | None = None) -> int:
        """Images of a split that one client holds, or all clients together."""
        members = self.members.values() if client is None else (self.members[client],)
        return sum(int(getattr(member, split)) for member in members)

    def sample(self, config: RunConfig, round: int, busy: set[int]) -> tuple[int, ...]:
        """The clients of a round in ascending order: ``client-fraction`` of all, at random.

        Raises
        ------
        TooFewClients
            If fewer than ``min-clients`` are free.
        """
        # 0.07 * 100 is a little more than 7 in binary, and 7 clients are meant.
        share = math.ceil(config.client_fraction * len(self.members) - 1e-9)
        wanted = max(share, config.min_clients)
        rng = np.random.default_rng(derive_seed(config.seed, "clients", round))
        order = rng.permutation(sorted(self.members))
        free = [int(client) for client in order if int(client) not in busy]
        if len(free) < config.min_clients:
            raise TooFewClients(
                f"round {round}: {len(free)} clients are free, min-clients = {config.min_clients}"
            )
        return tuple(sorted(free[:wanted]))


def call_roll(grid: Grid, config: RunConfig) -> Roster:
    """Wait until all clients are there, and ask each who it is.

    How many to expect is what the first of them says (its ``num-partitions``).

    Raises
    ------
    TooFewClients
        If fewer than expected came within ``start-timeout``.
    RunFailed
        If a client cannot start (its data or keys are wrong), or two have the same partition.
    """
    exchange = Exchange(grid, config.start_timeout)
    deadline = time.time() + config.start_timeout
    expected, members = config.min_clients, dict[int, Member]()
    asked: set[int] = set()
    while len(members) < expected:
        nodes = [node for node in grid.get_node_ids() if node not in asked]
        if nodes and len(asked) + len(nodes) >= config.min_clients:
            asked.update(nodes)
            expected = max(expected, _describe(exchange, nodes, members))
        elif time.time() > deadline:
            raise TooFewClients(
                f"{max(len(members), len(nodes))} clients came within start-timeout = "
                f"{config.start_timeout:g} s; expected are {expected} (min-clients = "
                f"{config.min_clients})"
            )
        else:
            time.sleep(0.02)
    return Roster(dict(sorted(members.items())))


def _describe(exchange: Exchange, nodes: list[int], members: dict[int, Member]) -> int:
    requests = {
        node: Message(compose(config={"ask": "who"}), node, Action.DESCRIBE) for node in nodes
    }
    replies, failures = exchange.ask(requests)
    if failures:
        first = next(iter(failures.values()))
        raise RunFailed(f"{len(failures)} clients could not start; the first: {first.reason}")
    partitions = 0
    for node, reply in replies.items():
        told = metrics_of(reply.message.content)
        client = int(told["partition-id"])
        if client in members:
            raise RunFailed(f"two clients have partition-id {client}; each needs its own")
        partitions = max(partitions, int(told["num-partitions"]))
        members[client] = Member(
            client, node, int(told["train"]), int(told["validation"]), int(told["test"])
        )
    return partitions
