# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, termination and a closed terminal as one exception, and a shield against it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Self

SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class Interrupted(BaseException):
    """A signal asked for the end.

    Parameters
    ----------
    number : int
        The signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Interrupts:
    """Within this context signals raise :class:`Interrupted`, except under :meth:`shield`.

    A signal that is ignored stays so, as ``nohup`` has it.
    """

    def __init__(self) -> None:
        self._shielded = False

    def __enter__(self) -> Self:
        before = {number: signal.getsignal(number) for number in SIGNALS}
        self._before = {n: old for n, old in before.items() if old is not signal.SIG_IGN}
        for number in self._before:
            signal.signal(number, self._raise)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def shield(self) -> Iterator[None]:
        """Let cleaning up finish, however often Ctrl-C is pressed."""
        self._shielded = True
        try:
            yield
        finally:
            self._shielded = False

    def _raise(self, number: int, _: FrameType | None) -> None:
        if not self._shielded:
            raise Interrupted(number)
