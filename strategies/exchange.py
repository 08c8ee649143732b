# SPDX-License-Identifier: Apache-2.0
"""One exchange: a request to each of several clients, and their replies.

Flower's ``send_and_receive`` polls in fixed steps (0.1 s in simulation, 3 s in deployment); here
messages are pushed and pulled with a short poll, at most one under way per client.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from flwr.app import Message
from flwr.serverapp import Grid

SHORTEST_PAUSE, LONGEST_PAUSE, SHARE = 0.002, 0.1, 0.1
"""Seconds between two polls: a share of what has been waited, so that a long wait costs little."""


@dataclass(frozen=True)
class Reply:
    """A client's reply, with the server's times of sending and arrival (seconds since 1970)."""

    message: Message
    sent: float
    arrived: float


@dataclass(frozen=True)
class Failure:
    """Why a client gave no answer; ``reason`` holds the client's traceback if there is one."""

    client: int
    action: str
    reason: str

    def __str__(self) -> str:
        return f"client {self.client} failed in {self.action}: {self.reason.strip()}"


class Exchange:
    """Sends requests and waits for replies.

    Parameters
    ----------
    grid : Grid
    timeout : float
        Seconds after which a client counts as failed.
    """

    def __init__(self, grid: Grid, timeout: float) -> None:
        self.grid, self.timeout = grid, timeout
        self._late: dict[int, str] = {}

    def ask(self, requests: Mapping[int, Message]) -> tuple[dict[int, Reply], dict[int, Failure]]:
        """Send each client its request and wait for all replies or the timeout.

        A client that runs into the timeout is :meth:`busy` until its late reply has come.
        """
        if not requests:
            return {}, {}
        clients = list(requests)
        sent = time.time()
        ids = list(self.grid.push_messages([requests[client] for client in clients]))
        if len(ids) != len(clients):
            raise RuntimeError("Flower did not take all messages of an exchange")
        waiting = dict(zip(ids, clients, strict=True))
        replies: dict[int, Reply] = {}
        failures: dict[int, Failure] = {}
        while waiting and time.time() - sent < self.timeout:
            for message in self.grid.pull_messages(list(waiting)):
                client = waiting.pop(message.metadata.reply_to_message_id)
                if message.has_error():
                    reason = message.error.reason or f"error code {message.error.code}"
                    failures[client] = Failure(client, _action(requests[client]), reason)
                else:
                    replies[client] = Reply(message, sent, time.time())
            if waiting:
                waited = time.time() - sent
                time.sleep(min(max(SHARE * waited, SHORTEST_PAUSE), LONGEST_PAUSE))
        for message_id, client in waiting.items():
            self._late[client] = message_id
            reason = f"no reply within step-timeout = {self.timeout:g} s"
            failures[client] = Failure(client, _action(requests[client]), reason)
        return replies, failures

    def busy(self) -> set[int]:
        """Clients that still owe a reply; what has come late is taken and thrown away."""
        if self._late:
            by_id = {message_id: client for client, message_id in self._late.items()}
            for message in self.grid.pull_messages(list(by_id)):
                del self._late[by_id[message.metadata.reply_to_message_id]]
        return set(self._late)


def _action(message: Message) -> str:
    return message.metadata.message_type
