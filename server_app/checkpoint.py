# SPDX-License-Identifier: Apache-2.0
"""The server's checkpoint: trunk, its optimiser, averaged client weights, who is where."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor

from reports import RunFolder
from reports.run_folder import CLIENT_WEIGHTS
from strategies import RunState

TRUNK, MOMENTS, STATE = "trunk.safetensors", "trunk-optimiser.safetensors", "state.json"


def save_checkpoint(
    run: RunFolder,
    state: RunState,
    trunk: tuple[Mapping[str, Tensor], Mapping[str, Tensor]],
    *,
    keep: int,
) -> None:
    """Write the checkpoint of ``state.round``, whole or not at all; older ones go but ``keep``."""
    weights, moments = trunk
    with run.new_checkpoint(state.round) as folder:
        save_file(_contiguous(weights), folder / TRUNK)
        save_file(_contiguous(moments), folder / MOMENTS)
        if state.weights:
            save_file(_contiguous(state.weights), folder / CLIENT_WEIGHTS)
        facts = {"round": state.round, "finished": state.finished}
        (folder / STATE).write_text(json.dumps(facts), encoding="utf-8")
    for old in sorted(run.checkpoints_path.glob("round-*"))[:-keep]:
        shutil.rmtree(old)


def load_checkpoint(folder: Path) -> tuple[RunState, dict[str, Tensor], dict[str, Tensor]]:
    """The state, trunk weights and trunk moments of a checkpoint folder."""
    facts = json.loads((folder / STATE).read_text(encoding="utf-8"))
    clients = folder / CLIENT_WEIGHTS
    state = RunState(
        round=facts["round"],
        weights=load_file(clients) if clients.exists() else {},
        finished={int(client): round for client, round in facts["finished"].items()},
    )
    return state, load_file(folder / TRUNK), load_file(folder / MOMENTS)


def _contiguous(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.contiguous() for name, tensor in tensors.items()}
