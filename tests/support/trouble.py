# SPDX-License-Identifier: Apache-2.0
"""A grid that holds replies back and watches who owes one, and a clock that runs while waiting."""

import time
from collections.abc import Iterable
from types import SimpleNamespace

import pytest
from federation import LocalGrid
from flwr.app import Message


class TroubledGrid(LocalGrid):
    """``LocalGrid`` with one more harm, ``"late"``: served, but the reply waits for ``release``.

    Attributes
    ----------
    owed : dict
        For each node the message that it has not answered yet.
    doubled : list of int
        Clients that were sent a message while they owed a reply.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.owed: dict[int, str] = {}
        self.doubled: list[int] = []
        self._held: dict[str, Message] = {}

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        ids = []
        for message in messages:
            node = message.metadata.dst_node_id
            if node in self.owed:
                self.doubled.append(self.client(node))
            ids.append(self._served(message, self.sabotage(self.client(node), message)))
            self.owed[node] = ids[-1]
        return ids

    def _served(self, message: Message, harm: str | None) -> str:
        sabotage = self.sabotage
        self.sabotage = lambda client, message: None if harm == "late" else harm
        message_id = self._serve(message)
        self.sabotage = sabotage
        if harm == "late":
            self._held[message_id] = self._waiting.pop(message_id)
        return message_id

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        replies = list(super().pull_messages(message_ids))
        arrived = {reply.metadata.reply_to_message_id for reply in replies}
        self.owed = {node: one for node, one in self.owed.items() if one not in arrived}
        return replies

    def release(self) -> None:
        """Let late replies arrive."""
        self._waiting |= self._held
        self._held.clear()


@pytest.fixture
def troubled(monkeypatch: pytest.MonkeyPatch) -> None:
    """``federate`` gives a :class:`TroubledGrid`; an exchange's waiting takes no real time.

    Clients that compute slowly on a busy machine never run into the timeout.
    """
    now = [time.time()]
    monkeypatch.setattr("federation.LocalGrid", TroubledGrid)
    clock = SimpleNamespace(
        time=lambda: now[0], sleep=lambda seconds: now.__setitem__(0, now[0] + seconds)
    )
    monkeypatch.setattr("strategies.exchange.time", clock)
