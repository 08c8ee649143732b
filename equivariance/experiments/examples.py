# SPDX-License-Identifier: Apache-2.0
"""Labelled examples in memory, and batches of them in an order that a seed decides."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from equivariance.experiments.errors import ExperimentError

__all__ = ["Batch", "Examples", "as_they_are", "batches", "sequential"]

Inputs = dict[str, Tensor]
Batch = tuple[Inputs, Tensor]
"""What a model takes, by argument name, and the labels."""


def as_they_are(inputs: Inputs) -> Inputs:
    """Return the inputs: nothing to prepare."""
    return inputs


@dataclass(frozen=True)
class Examples:
    """Inputs and labels, example by example along axis 0.

    Parameters
    ----------
    inputs : mapping of str to Tensor
        As stored, e.g. images as uint8.
    labels : Tensor
        int64, [M] or, for dense prediction, [M, H, W].
    prepare : callable
        From a batch of stored inputs to the model's arguments.
    """

    inputs: Mapping[str, Tensor]
    labels: Tensor
    prepare: Callable[[Inputs], Inputs] = as_they_are

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, indices: Tensor) -> "Examples":
        """Return some of them, in the order of `indices`."""
        inputs = {name: tensor[indices] for name, tensor in self.inputs.items()}
        return replace(self, inputs=inputs, labels=self.labels[indices])

    def first(self, count: int) -> "Examples":
        """Return the first `count`; 0 means all."""
        return self.take(torch.arange(min(count or len(self), len(self))))

    def shuffled(self, seed: int) -> "Examples":
        """Return them in an order that the seed decides."""
        return self.take(torch.randperm(len(self), generator=_generator(seed)))

    def split(self, share: float, seed: int) -> tuple["Examples", "Examples"]:
        """Return two disjoint parts, the second one `share` of all, none of them empty.

        Raises
        ------
        ExperimentError
            If there are fewer than two examples.
        """
        if len(self) < 2:
            raise ExperimentError(f"{len(self)} example: cannot be split into training and test")
        mixed = self.shuffled(seed)
        held = min(max(1, round(share * len(self))), len(self) - 1)
        indices = torch.arange(len(self))
        return mixed.take(indices[held:]), mixed.take(indices[:held])

    def batch(self, indices: Tensor, device: str) -> Batch:
        """Return prepared inputs and labels on a device."""
        part = self.take(indices)
        inputs = {name: tensor.to(device) for name, tensor in part.inputs.items()}
        return self.prepare(inputs), part.labels.to(device)


def batches(
    examples: Examples, *, size: int, steps: int, seed: int, device: str
) -> Iterator[Batch]:
    """Give `steps` batches, reshuffled every epoch, the same for the same seed."""
    generator = _generator(seed)
    size = min(size, len(examples))
    waiting = torch.empty(0, dtype=torch.int64)
    for _ in range(steps):
        if len(waiting) < size:
            waiting = torch.randperm(len(examples), generator=generator)
        yield examples.batch(waiting[:size], device)
        waiting = waiting[size:]


def sequential(examples: Examples, *, size: int, device: str) -> Iterator[Batch]:
    """Give all examples once, in their order."""
    indices = torch.arange(len(examples))
    for start in range(0, len(examples), size):
        yield examples.batch(indices[start : start + size], device)


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
