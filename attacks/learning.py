# SPDX-License-Identifier: Apache-2.0
"""Training of an attacker's network: seeded, with a held-out curve, resumable after each epoch.

What counts in the end are the weights of the epoch that did best on held-out auxiliary people; the
victims play no part in that choice.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from attacks.attacker import Workshop
from attacks.errors import AttackError
from attacks.view import Auxiliary
from reports import atomic
from split import derive_seed
from split.optimise import export_moments, load_moments
from split.seeds import seeded

__all__ = ["Fold", "Recipe", "fit", "split_auxiliary"]

HELD_OUT = 0.1
HISTORY = "history.json"

Loss = Callable[[NDArray[np.int64], int], Tensor]
"""``loss(rows of the auxiliary images, index of the batch)``: a scalar, with its graph in training.

Held-out batches have odd indices, others even ones.
"""


@dataclass(frozen=True)
class Fold:
    """Rows of the auxiliary images to learn from, and those of other people to judge by."""

    learn: NDArray[np.int64]
    held_out: NDArray[np.int64]


def split_auxiliary(auxiliary: Auxiliary, seed: int) -> Fold:
    """Hold out a tenth of the identities (one at least)."""
    people = np.unique(auxiliary.identities)
    generator = np.random.default_rng(derive_seed(seed, "held-out"))
    count = max(1, round(HELD_OUT * len(people)))
    held = np.isin(auxiliary.identities, generator.permutation(people)[:count])
    return Fold(np.flatnonzero(~held), np.flatnonzero(held))


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a network learns: AdamW, one warm-up epoch, cosine to zero, gradients clipped at 1.

    ``epochs`` counts passes over the auxiliary images, of at least ``steps`` batches each.
    """

    epochs: int
    batch: int = 32
    lr: float = 1e-3
    weight_decay: float = 0.05
    steps: int = 16


def fit(
    stage: str, network: nn.Module, loss: Loss, fold: Fold, recipe: Recipe, shop: Workshop
) -> float:
    """Train ``network`` in place and leave it in evaluation mode.

    The state after each epoch is kept in the workshop's folder; called again with the same
    options it goes on from there, with the same numbers as if it had never stopped.

    Parameters
    ----------
    stage : str
        Name of this training within the attacker.
    network : nn.Module
        On the workshop's device.
    loss : callable
        Of a batch; also called without graph on held-out rows.
    fold : Fold
    recipe : Recipe
    shop : Workshop

    Returns
    -------
    float
        The held-out loss of the weights that were kept.
    """
    optimiser = torch.optim.AdamW(
        network.parameters(), lr=recipe.lr, weight_decay=recipe.weight_decay
    )
    keeper = _Keeper(shop.folder, stage)
    done = keeper.load(network, optimiser)
    if done == 0:
        before = _held_out(network, loss, fold, recipe)
        keeper.save(network, optimiser, 0, before, before)
    for epoch in range(done, recipe.epochs):
        shop.progress(stage, epoch, recipe.epochs)
        seed = derive_seed(shop.options.seed, stage, epoch)
        total, count = 0.0, 0
        with seeded(seed, shop.device):
            network.train()
            steps = list(_batches(fold.learn, recipe, seed))
            for step, rows in enumerate(steps):
                _set_rate(optimiser, recipe, epoch + step / len(steps))
                value = loss(rows, 2 * (epoch * len(steps) + step))
                optimiser.zero_grad(set_to_none=True)
                value.backward()  # type: ignore[no-untyped-call]
                nn.utils.clip_grad_norm_(network.parameters(), 1.0)
                optimiser.step()
                total, count = total + value.item() * len(rows), count + len(rows)
        held_out = _held_out(network, loss, fold, recipe)
        keeper.save(network, optimiser, epoch + 1, total / count, held_out)
    shop.progress(stage, recipe.epochs, recipe.epochs)
    network.eval()
    return keeper.load_best(network)


def _held_out(network: nn.Module, loss: Loss, fold: Fold, recipe: Recipe) -> float:
    network.eval()
    total = 0.0
    with torch.no_grad():
        chunks = range(0, len(fold.held_out), recipe.batch)
        for number, start in enumerate(chunks):
            rows = fold.held_out[start : start + recipe.batch]
            total += loss(rows, 2 * number + 1).item() * len(rows)
    return total / len(fold.held_out)


def _batches(rows: NDArray[np.int64], recipe: Recipe, seed: int) -> Iterator[NDArray[np.int64]]:
    """Shuffled batches of one epoch; few rows are gone through several times."""
    generator = np.random.default_rng(seed)
    size = min(recipe.batch, len(rows))
    passes = max(1, -(-recipe.steps * size // len(rows)))
    order = np.concatenate([generator.permutation(rows) for _ in range(passes)])
    for start in range(0, len(order) - size + 1, size):
        yield order[start : start + size]


def _set_rate(optimiser: torch.optim.Optimizer, recipe: Recipe, epoch: float) -> None:
    warm = min(1.0, epoch + 0.05)
    cosine = 0.5 * (1 + np.cos(np.pi * epoch / recipe.epochs))
    for group in optimiser.param_groups:
        group["lr"] = recipe.lr * warm * cosine


class _Keeper:
    """The state of one stage on disk, the best one so far, and the learning curve of all stages."""

    def __init__(self, folder: Path, stage: str) -> None:
        self._state = folder / f"{stage}.safetensors"
        self._best = folder / f"{stage}-best.safetensors"
        self._history, self._stage = folder / HISTORY, stage
        folder.mkdir(parents=True, exist_ok=True)

    def load(self, network: nn.Module, optimiser: torch.optim.Optimizer) -> int:
        """Epochs done; their state is in ``network`` and ``optimiser`` then."""
        if not self._state.is_file():
            return 0
        with _sound(self._state):
            tensors = load_file(self._state)
        done = int(tensors.pop("epoch"))
        parts: dict[str, dict[str, Tensor]] = {"network": {}, "moments": {}}
        for key, tensor in tensors.items():
            part, _, name = key.partition("/")
            parts[part][name] = tensor
        network.load_state_dict(parts["network"])
        load_moments(optimiser, network, parts["moments"])
        return done

    def load_best(self, network: nn.Module) -> float:
        """The weights of the epoch with the lowest held-out loss, and that loss."""
        with _sound(self._best):
            network.load_state_dict(load_file(self._best))
        return min(float(r["held_out"]) for r in self._rows() if r["stage"] == self._stage)

    def _rows(self) -> list[dict[str, Any]]:
        with _sound(self._history):
            rows: list[dict[str, Any]] = json.loads(self._history.read_text())
        return rows

    def save(
        self,
        network: nn.Module,
        optimiser: torch.optim.Optimizer,
        epoch: int,
        loss: float,
        held_out: float,
    ) -> None:
        """Keep the state after ``epoch``; the state file goes last, so a cut is made good."""
        rows = self._rows() if self._history.is_file() else []
        mine = [r for r in rows if r["stage"] == self._stage and r["epoch"] < epoch]
        others = [r for r in rows if r["stage"] != self._stage]
        row = {"stage": self._stage, "epoch": epoch, "loss": loss, "held_out": held_out}
        if all(held_out < before["held_out"] for before in mine):
            _save(self._best, network.state_dict())
        atomic.write_text(self._history, json.dumps([*others, *mine, row], indent=1))
        tensors = {f"network/{k}": v for k, v in network.state_dict().items()}
        tensors |= {f"moments/{k}": v for k, v in export_moments(optimiser, network).items()}
        _save(self._state, {**tensors, "epoch": torch.tensor(epoch)})


@contextmanager
def _sound(file: Path) -> Iterator[None]:
    """Says which file is to blame, and what to do."""
    try:
        yield
    except (OSError, ValueError, SafetensorError) as error:
        raise AttackError(f"{file}: {error}; remove {file.parent} to learn again") from error


def _save(path: Path, tensors: Mapping[str, Tensor]) -> None:
    kept = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    atomic.write_bytes(path, save(kept))
