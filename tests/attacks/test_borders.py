# SPDX-License-Identifier: Apache-2.0
"""Laying patches by their borders."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attacks.borders import Borders, _local_costs, arrange, border_costs, energy
from split.patches import unfold_patches


def problem(seed: int, side: int, batch: int = 2) -> tuple[torch.Tensor, Borders]:
    generator = torch.Generator().manual_seed(seed)
    count = side * side
    unary, across, down = torch.rand(
        3, batch, count, count, generator=generator, dtype=torch.float64
    )
    return unary, Borders(across, down)


def test_energy_is_the_sum_over_places_and_seams() -> None:
    unary, borders = problem(0, side=2, batch=1)
    layout = torch.tensor([[2, 0, 3, 1]])
    u, a, d = unary[0], borders.across[0], borders.down[0]
    expected = u[2, 0] + u[0, 1] + u[3, 2] + u[1, 3]
    expected = expected + 0.5 * (a[2, 0] + a[3, 1] + d[2, 3] + d[0, 1])
    assert energy(layout, unary, borders, 0.5).item() == pytest.approx(expected.item())


@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.3, 2.0]))
@settings(max_examples=15, deadline=None)
def test_the_layout_found_beats_nearly_all_others(seed: int, weight: float) -> None:
    unary, borders = problem(seed, side=2)
    found = energy(arrange(unary, borders, weight), unary, borders, weight)
    for sample in range(2):
        all_energies = torch.tensor([
            energy(torch.tensor([layout]), unary[sample : sample + 1],
                   Borders(borders.across[sample : sample + 1], borders.down[sample : sample + 1]),
                   weight).item()
            for layout in itertools.permutations(range(4))
        ])  # fmt: skip
        rank = int((all_energies < found[sample].item() - 1e-9).sum())
        assert rank == 0 if weight == 0 else rank <= 6  # a local optimum of 24


@given(st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_local_costs_tell_what_a_swap_of_strangers_changes(seed: int) -> None:
    unary, borders = problem(seed, side=3, batch=1)
    layout = torch.randperm(9, generator=torch.Generator().manual_seed(seed)).unsqueeze(0)
    costs = _local_costs(layout, unary, borders, 0.7)[0]
    first, second = 0, 8  # opposite corners share no seam
    a, b = layout[0, first], layout[0, second]
    change = costs[b, first] + costs[a, second] - costs[a, first] - costs[b, second]
    swapped = layout.clone()
    swapped[0, first], swapped[0, second] = b, a
    before, after = (energy(x, unary, borders, 0.7).item() for x in (layout, swapped))
    assert after - before == pytest.approx(change.item())


def test_a_smooth_picture_is_put_together_again() -> None:
    line = torch.linspace(-1, 1, 24)
    picture = torch.stack([
        torch.sin(3 * line[:, None] + 2 * line[None]), line[:, None] * line[None],
        torch.cos(2 * line[None] - line[:, None]),
    ])[None]  # fmt: skip
    patches = unfold_patches(picture, 6)
    order = torch.randperm(16, generator=torch.Generator().manual_seed(0))
    # Where the first patch belongs is told; all else follows from the borders.
    unary = torch.zeros(1, 16, 16)
    unary[0, int((order == 0).nonzero()), 1:] = 100.0
    layout = arrange(unary, border_costs(patches[:, order], 6), 1.0)
    placed = order[layout[0]]
    assert (placed == torch.arange(16)).float().mean() > 0.8
