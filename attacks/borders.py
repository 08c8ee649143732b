# SPDX-License-Identifier: Apache-2.0
"""How well patches fit beside each other, and the search for the best arrangement.

Shapes: B images, n patches, p pixels a side. Costs are matrices over patches: ``across[b, i, j]``
for j right of i, ``down[b, i, j]`` for j below i.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from attacks.assignment import assign

__all__ = ["Borders", "arrange", "border_costs", "energy"]


@dataclass(frozen=True)
class Borders:
    """Costs of neighbours: ``across`` and ``down``, [B, n, n] each."""

    across: Tensor
    down: Tensor


def border_costs(patches_BnP: Tensor, patch: int) -> Borders:
    """Jumps over the border beyond what the gradients on both sides foretell, from 0 to 1.

    A jump counts relative to those of the same patch's other neighbours to be, so that a plain
    patch, which fits beside many, says less than a rich one.
    """
    cells = patches_BnP.reshape(*patches_BnP.shape[:2], 3, patch, patch)

    def jumps(last: Tensor, before: Tensor, first: Tensor, after: Tensor) -> Tensor:
        # last, before: [B, n, 3, p] of the one patch; first, after of its neighbour.
        forward = (last + (last - before) / 2).flatten(2)
        backward = (first + (first - after) / 2).flatten(2)
        return _relative(torch.cdist(forward, backward))

    return Borders(
        across=jumps(cells[..., -1], cells[..., -2], cells[..., 0], cells[..., 1]),
        down=jumps(cells[..., -1, :], cells[..., -2, :], cells[..., 0, :], cells[..., 1, :]),
    )


def _relative(costs_Bnn: Tensor) -> Tensor:
    """Costs over the lower quartile of their row and their column, saturated."""
    rows = costs_Bnn.quantile(0.25, dim=2, keepdim=True)
    columns = costs_Bnn.quantile(0.25, dim=1, keepdim=True)
    scale = (rows * columns).sqrt().clamp_min(1e-6)
    return 1 - torch.exp(-(costs_Bnn / scale).square())


def energy(layout: Tensor, unary: Tensor, borders: Borders, weight: float) -> Tensor:
    """Cost [B] of layouts ``[B, n]`` (the patch at each place, row by row).

    ``unary[b, i, s]`` is the cost of patch i at place s.
    """
    side = round(layout.shape[1] ** 0.5)
    grid = layout.view(-1, side, side)
    batch = torch.arange(len(layout), device=layout.device)[:, None]
    places = torch.arange(layout.shape[1], device=layout.device)
    total = unary[batch, layout, places].sum(dim=1)
    left, right = grid[:, :, :-1].flatten(1), grid[:, :, 1:].flatten(1)
    above, below = grid[:, :-1].flatten(1), grid[:, 1:].flatten(1)
    seams = borders.across[batch, left, right].sum(1) + borders.down[batch, above, below].sum(1)
    return total + weight * seams


def arrange(unary: Tensor, borders: Borders, weight: float, swaps: int = 200) -> Tensor:
    """A layout ``[B, n]`` of low energy.

    Mean-field annealing (a soft assignment, made doubly stochastic, in which each place looks at
    what its neighbours are likely to be, while the temperature falls); then the best assignment,
    and swaps of two patches as long as one helps. A good local optimum, not always the best
    layout; never worse than the best one without borders.
    """
    starts = [_assign(unary), _anneal(unary, borders, weight)]
    found = [_swap(start, unary, borders, weight, swaps) for start in starts]
    costs = torch.stack([energy(layout, unary, borders, weight) for layout in found])
    return torch.stack(found)[costs.argmin(dim=0), torch.arange(len(unary))]


STEPS, HOT, COLD = 80, 3.0, 0.05
"""Of the annealing; temperatures in units of the energies' spread over places."""


def _anneal(unary: Tensor, borders: Borders, weight: float) -> Tensor:
    spread = unary.std(dim=2).mean(dim=1) + weight * borders.across.std(dim=2).mean(dim=1)
    spread = spread.clamp_min(1e-9)[:, None, None]
    soft = _balanced(-unary / (HOT * spread))
    costs = unary
    for step in range(STEPS):
        heat = HOT * (COLD / HOT) ** (step / (STEPS - 1))
        costs = _expected_costs(soft, unary, borders, weight)
        soft = 0.5 * soft + 0.5 * _balanced(-costs / (heat * spread))
    return _assign(costs)


def _balanced(logits: Tensor, rounds: int = 10) -> Tensor:
    """Sinkhorn: patches sum to one over places, and places over patches."""
    for _ in range(rounds):
        logits = logits - logits.logsumexp(dim=2, keepdim=True)
        logits = logits - logits.logsumexp(dim=1, keepdim=True)
    return logits.exp()


def _expected_costs(soft: Tensor, unary: Tensor, borders: Borders, weight: float) -> Tensor:
    """Cost of each patch at each place beside what its neighbours are likely to be.

    ``soft[b, i, s]``: how likely patch i is at place s.
    """
    batch, count, _ = soft.shape
    side = round(count**0.5)
    grid = (batch, count, side, side)
    seams = torch.zeros_like(unary).view(grid)
    left_of = (borders.across.transpose(1, 2) @ soft).view(grid)  # i beside its left neighbour
    right_of = (borders.across @ soft).view(grid)
    above = (borders.down.transpose(1, 2) @ soft).view(grid)
    below = (borders.down @ soft).view(grid)
    seams[..., 1:] += left_of[..., :-1]
    seams[..., :-1] += right_of[..., 1:]
    seams[..., 1:, :] += above[..., :-1, :]
    seams[..., :-1, :] += below[..., 1:, :]
    return unary + weight * seams.view(batch, count, count)


def _assign(costs: Tensor) -> Tensor:
    """The layout of least cost, where ``costs[b, i, s]`` is patch i at place s."""
    return assign(costs.mT).to(costs.device)


def _local_costs(layout: Tensor, unary: Tensor, borders: Borders, weight: float) -> Tensor:
    """Cost of each patch at each place beside the neighbours that the layout has there."""
    certain = torch.zeros_like(unary).scatter_(1, layout.unsqueeze(1), 1.0)
    return _expected_costs(certain, unary, borders, weight)


def _swap(layout: Tensor, unary: Tensor, borders: Borders, weight: float, rounds: int) -> Tensor:
    batch = torch.arange(len(layout), device=layout.device)
    best = energy(layout, unary, borders, weight)
    tried = torch.zeros(len(layout), layout.shape[1] ** 2, dtype=torch.bool, device=layout.device)
    for _ in range(rounds):
        costs = _local_costs(layout, unary, borders, weight)
        # here[b, s, t]: cost at place t of the patch that is at place s.
        here = costs.gather(1, layout[:, :, None].expand(-1, -1, layout.shape[1]))
        own = here.diagonal(dim1=1, dim2=2)
        gain = own[:, :, None] + own[:, None, :] - here - here.transpose(1, 2)
        gain = gain.flatten(1).masked_fill(tried, -torch.inf)
        value, pair = gain.max(dim=1)
        first, second = pair // layout.shape[1], pair % layout.shape[1]
        trial = layout.clone()
        trial[batch, first], trial[batch, second] = layout[batch, second], layout[batch, first]
        cost = energy(trial, unary, borders, weight)
        # The gain is exact but for pairs of neighbours, so the energy decides.
        better = (cost < best - 1e-9) & (value > -torch.inf)
        if not bool((value > 1e-9).any()):
            break
        tried[batch, pair] = True
        tried[better] = False
        layout, best = torch.where(better[:, None], trial, layout), torch.where(better, cost, best)
    return layout
