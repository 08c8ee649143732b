# SPDX-License-Identifier: Apache-2.0
"""From scores to a column permutation: the best one that is admissible.

`scores[i, j]` says how well column i of the locked model goes with column j of the reference; a
permutation o with `locked[..., i] = reference[..., o[i]]` scores the sum of `scores[i, o[i]]`.
"""

import torch
from torch import Tensor

__all__ = ["best_headwise", "best_order", "nearest"]


def nearest(scores: Tensor) -> Tensor:
    """Give every column its own best match: the plain nearest-column attack.

    Returns
    -------
    Tensor
        [dim], int64; a permutation only if no two columns want the same match.
    """
    return scores.argmax(dim=1)


def best_order(scores: Tensor) -> Tensor:
    """Return the permutation [dim] of the highest score (Hungarian algorithm)."""
    from scipy.optimize import linear_sum_assignment  # takes long to import

    return torch.from_numpy(linear_sum_assignment(scores.numpy(), maximize=True)[1])


def best_headwise(scores: Tensor, heads: int) -> Tensor:
    """Return the permutation of the highest score among those that keep heads together.

    Exact: the best permutation inside each pair of heads, and with their scores the best pairing of
    heads. It takes heads**2 + 1 assignments.

    Parameters
    ----------
    scores : Tensor
        [dim, dim] on the CPU.
    heads : int
        Divides dim; 1 allows all permutations.
    """
    size = scores.shape[0] // heads
    pairs = scores.reshape(heads, size, heads, size).permute(0, 2, 1, 3)
    within = torch.stack([torch.stack([best_order(pair) for pair in row]) for row in pairs])
    across = best_order(pairs.gather(3, within.unsqueeze(3)).sum(dim=(2, 3)))
    chosen = within[torch.arange(heads), across]
    return (across.unsqueeze(1) * size + chosen).flatten()
