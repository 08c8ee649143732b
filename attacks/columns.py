# SPDX-License-Identifier: Apache-2.0
"""Undoing a column permutation: features of the smashed data matched with those of the edge.

A column permutation is one for the whole run. Each feature has its own statistics over tokens, and
an attacker that knows edge and defence finds, for each received feature, the edge's feature with
the same ones (a nearest-column matching as in ArrowMatch, on activations instead of weights).
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attacks.assignment import assign
from attacks.simulation import simulate
from attacks.view import View
from split import derive_seed

__all__ = ["ColumnMatcher"]

SAMPLES = 512


class ColumnMatcher:
    """Undoes the column permutation of a run, if it has one.

    Parameters
    ----------
    view : View
        With the grants ``edge`` and ``defence``.
    rows : NDArray
        Auxiliary images to take the edge's statistics from.
    """

    def __init__(self, view: View, rows: NDArray[np.int64]) -> None:
        self._order: Tensor | None = None
        if "column" in view.geometry.permute:
            images = view.auxiliary.images[rows[:SAMPLES]]
            prefix = 0 if view.geometry.permute_prefix else view.geometry.prefix
            expected = _statistics(simulate(view, images, derive_seed(0, "columns")), prefix)
            received = _statistics(view.smashed[:SAMPLES], prefix)
            self._order = assign(_cost(expected, received))

    def undone(self, smashed: Tensor) -> Tensor:
        """Smashed data ``[M, N, D]`` with the features in the edge's order, as far as matched."""
        return smashed if self._order is None else smashed[..., self._order]


@dataclass(frozen=True)
class _Statistics:
    """Means over images of S statistics of each feature, and their squared standard errors."""

    mean: Tensor  # [S, D]
    error: Tensor  # [S, D]


def _statistics(tokens_BND: Tensor, prefix: int) -> _Statistics:
    """Prefix tokens (at cut 0 the same for all images), mean and mean square of the others."""
    tokens = tokens_BND.double()
    body = tokens[:, prefix:]
    moments = [body.mean(dim=1, keepdim=True), body.square().mean(dim=1, keepdim=True)]
    values = torch.cat([tokens[:, :prefix], *moments], dim=1)
    return _Statistics(values.mean(dim=0), values.var(dim=0) / len(values))


def _cost(expected: _Statistics, received: _Statistics) -> Tensor:
    """[D, D]: how unlikely it is that two features are one, by differences in standard errors."""
    scale = expected.mean.var(dim=1)[:, None, None]
    error = expected.error[:, :, None] + received.error[:, None, :] + 1e-9 * scale + 1e-30
    difference = expected.mean[:, :, None] - received.mean[:, None, :]
    return (difference.square() / error).sum(dim=0)
