# SPDX-License-Identifier: Apache-2.0
"""What a client is between two messages, and how it keeps that on its own disk."""

import contextlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

PARTS = ("edge", "tail", "edge-moments", "tail-moments")
"""The tensors of a state: weights of edge and tail, and their optimisers' moments."""

KEPT_ROUNDS = 3


class StateError(RuntimeError):
    """A client cannot go on, since its own state is not where it should be."""


@dataclass
class ClientState:
    """Weights, moments and counters of one client; the secret is held apart.

    Parameters
    ----------
    tensors : dict
        For each of :data:`PARTS` its named tensors.
    finished : int
        The last round that this client completed; 0: none.
    begun : int
        The last round that it began; above ``finished`` in the middle of a round.
    """

    tensors: dict[str, dict[str, Tensor]] = field(default_factory=dict)
    finished: int = 0
    begun: int = 0


class StateFolder:
    """One client's states, one file per completed round, the last three kept.

    Parameters
    ----------
    path : Path
        The client's own folder, such as ``client-state/RUN/client-003``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def save(self, state: ClientState) -> None:
        """Write ``state`` under its ``finished`` round, atomically, and drop old ones."""
        self.path.mkdir(parents=True, exist_ok=True)
        flat = {
            f"{part}/{name}": tensor.contiguous()
            for part, tensors in state.tensors.items()
            for name, tensor in tensors.items()
        }
        target = self._file(state.finished)
        partial = target.with_suffix(f".partial-{os.getpid()}")
        save_file(flat, partial, metadata={"state": json.dumps({"finished": state.finished})})
        partial.replace(target)
        for old in sorted(self.path.glob("round-*.safetensors"))[:-KEPT_ROUNDS]:
            with contextlib.suppress(FileNotFoundError):
                old.unlink()

    def load(self, round: int) -> ClientState:
        """The state after ``round``.

        Raises
        ------
        StateError
            If there is none, or it cannot be read.
        """
        path = self._file(round)
        state = ClientState({part: {} for part in PARTS}, finished=round, begun=round)
        try:
            with safe_open(path, framework="pt") as file:
                for key in file.keys():  # noqa: SIM118 (not a dict)
                    part, _, name = key.partition("/")
                    state.tensors[part][name] = file.get_tensor(key)
        except (OSError, SafetensorError) as error:
            raise StateError(
                f"state of round {round} cannot be read from {path}: {error}; "
                "state-dir must be the folder of the run that is resumed"
            ) from error
        return state

    def drop_after(self, round: int) -> None:
        """Forget states of later rounds, which a resumed run makes anew, and half-written ones."""
        for path in self.path.glob("round-*.partial-*"):
            path.unlink(missing_ok=True)
        for path in self.path.glob("round-*.safetensors"):
            if int(path.stem.removeprefix("round-")) > round:
                path.unlink(missing_ok=True)

    def _file(self, round: int) -> Path:
        return self.path / f"round-{round:06d}.safetensors"
