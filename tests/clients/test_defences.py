# SPDX-License-Identifier: Apache-2.0
"""Each defence by itself: noise, low-pass filter and batch shuffle against their definitions."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from clients.defences import parse_defences

quick = settings(deadline=None, max_examples=30, derandomize=True)


def apply(text: str, grid: Tensor, *, cell: int = 1, seed: int = 0) -> Tensor:
    (defence,) = parse_defences(text)
    return defence.apply(grid, torch.Generator().manual_seed(seed), cell=cell)


# -- gn ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.1, 2.0])
def test_noise_has_its_sigma_and_is_independent(sigma: float) -> None:
    grid = torch.linspace(-1, 1, 64 * 64).view(1, 1, 64, 64).expand(4, 3, 64, 64)
    noise = apply(f"gn:{sigma}", grid) - grid
    assert noise.mean().item() == pytest.approx(0, abs=4 * sigma / math.sqrt(noise.numel()))
    assert noise.std().item() == pytest.approx(sigma, rel=0.02)
    pairs = torch.corrcoef(noise.reshape(12, -1)) - torch.eye(12)
    assert pairs.abs().max() < 0.1


def test_no_noise_at_sigma_zero_and_another_seed_is_other_noise() -> None:
    grid = torch.randn(2, 3, 4, 4)
    assert torch.equal(apply("gn:0", grid), grid)
    assert torch.equal(apply("gn:1", grid, seed=1), apply("gn:1", grid, seed=1))
    assert not torch.equal(apply("gn:1", grid, seed=1), apply("gn:1", grid, seed=2))


# -- lp ---------------------------------------------------------------------------------------


def kept_frequencies(radius: float, side: int) -> int:
    """How many of ``side`` x ``side`` frequencies a filter lets through in an impulse."""
    impulse = torch.zeros(1, 1, side, side, dtype=torch.float64)
    impulse[..., 0, 0] = 1.0
    spectrum = torch.fft.fft2(apply(f"lp:{radius}", impulse))[0, 0]
    # The real part is half of each kept frequency and half of its mirror image.
    return round(spectrum.real.sum().item())


def test_it_keeps_22_by_22_of_224() -> None:
    assert kept_frequencies(0.05, 224) == 22 * 22
    assert kept_frequencies(0.05, 20) == 2 * 2
    assert kept_frequencies(0.5, 16) == 16 * 16


def centred_mask(grid: Tensor, radius: float) -> Tensor:
    """The paper's way: shift the spectrum, keep a square around the centre, shift it back."""
    side = grid.shape[-1]
    centre, half = side // 2, math.floor(radius * side + 1e-9)
    mask = torch.zeros(side, side)
    mask[centre - half : centre + half, centre - half : centre + half] = 1
    spectrum = torch.fft.fftshift(torch.fft.fft2(grid), dim=(-2, -1)) * mask
    return torch.fft.ifft2(torch.fft.ifftshift(spectrum, dim=(-2, -1))).real


@pytest.mark.parametrize("side", [16, 20, 15])
@pytest.mark.parametrize("radius", [0.1, 0.25, 0.4])
def test_it_equals_a_centred_square_mask(side: int, radius: float) -> None:
    grid = torch.randn(2, 3, side, side, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(apply(f"lp:{radius}", grid), centred_mask(grid, radius))


def test_slow_waves_pass_and_fast_ones_do_not() -> None:
    places = torch.arange(32) * 2 * math.pi / 32

    def wave(frequency: int) -> Tensor:
        return torch.cos(frequency * places).expand(1, 1, 32, 32)

    # radius 0.125 of 32 is half = 4: -4 .. 3 pass, so the wave of 4 loses its mirror image.
    for frequency, factor in [(0, 1.0), (1, 1.0), (3, 1.0), (4, 0.5), (5, 0.0), (9, 0.0)]:
        filtered = apply("lp:0.125", wave(frequency))
        torch.testing.assert_close(filtered, factor * wave(frequency), rtol=0, atol=1e-5)


@quick
@given(st.integers(0, 99), st.sampled_from(["lp:0.2", "lp:0.5"]))
def test_it_is_linear_and_does_nothing_new_the_second_time(seed: int, text: str) -> None:
    one, other = torch.randn(2, 1, 1, 16, 16, generator=torch.Generator().manual_seed(seed))
    joint = apply(text, one + 2 * other)
    torch.testing.assert_close(joint, apply(text, one) + 2 * apply(text, other), atol=1e-5, rtol=0)
    # All but the border frequency, which stands at -half alone, passes a second time unchanged.
    once, twice = apply(text, one), apply(text, apply(text, one))
    spectrum = torch.fft.fft2(once - twice).abs()[0, 0]
    half = int(float(text[3:]) * 16 + 1e-9)
    inside = torch.fft.fftfreq(16, 1 / 16).round().abs() < half
    assert spectrum[inside][:, inside].max() < 1e-4


# -- bs ---------------------------------------------------------------------------------------


def coded(batch: int, side: int, cell: int) -> Tensor:
    """Every patch of every sample holds a number of its own in all of its values."""
    patches = side // cell
    codes = torch.arange(float(batch * patches**2)).view(batch, 1, patches, patches)
    return codes.repeat_interleave(cell, -1).repeat_interleave(cell, -2).expand(-1, 3, -1, -1)


@quick
@given(
    st.integers(1, 4), st.sampled_from([1, 2, 4]), st.sampled_from([0.0, 0.25, 0.4, 0.9, 1.0]),
    st.integers(0, 99),
)  # fmt: skip
def test_shuffle_moves_whole_patches_and_keeps_its_share(
    batch: int, cell: int, keep: float, seed: int
) -> None:
    grid = coded(batch, 8, cell)
    shuffled = apply(f"bs:{keep}", grid, cell=cell, seed=seed)
    before, after = (g[:, 0, ::cell, ::cell] for g in (grid, shuffled))
    whole = after.repeat_interleave(cell, -1).repeat_interleave(cell, -2)
    assert torch.equal(shuffled, whole[:, None].expand_as(shuffled))
    assert torch.equal(after.flatten().sort().values, before.flatten())
    count = (8 // cell) ** 2
    stayed = (after == before).flatten(1).sum(dim=1)
    assert bool((stayed >= round(keep * count)).all())
    if keep == 1.0:
        assert torch.equal(shuffled, grid)


def test_shuffle_crosses_samples_and_leaves_no_more_than_its_share() -> None:
    grid = coded(8, 16, 1)
    shuffled = apply("bs:0.25", grid)
    count = 16 * 16
    stayed = (shuffled == grid)[:, 0].flatten(1).float().mean(dim=1)
    assert stayed.tolist() == pytest.approx([0.25] * 8, abs=3 / count)
    home = shuffled[:, 0] // count == torch.arange(8.0)[:, None, None]
    # A moved patch comes from any of the eight samples alike.
    assert home.float().mean().item() == pytest.approx(0.25 + 0.75 / 8, abs=0.05)


# -- the text ---------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["gn:0.5", "lp:0.05", "bs:0.4"])
def test_a_defence_prints_as_it_is_written(text: str) -> None:
    assert [str(defence) for defence in parse_defences(f" {text} ")] == [text]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gn:-1", "gn:-1 is not allowed; gn takes sigma"),
        ("gn:nan", "gn:nan is not allowed"),
        ("gn:inf", "gn:inf is not allowed"),
        ("gn:much", "gn:much is not allowed"),
        ("lp:0", "lp:0 is not allowed; lp takes radius"),
        ("lp:0.6", "lp:0.6 is not allowed"),
        ("lp:nan", "lp:nan is not allowed"),
        ("bs:1.1", "bs:1.1 is not allowed; bs takes keep"),
        ("bs:-0.1", "bs:-0.1 is not allowed"),
        ("dp:1", "'dp:1' is no defence; allowed is a comma list of bs:NUMBER, gn:NUMBER"),
        ("gn", "'gn' is no defence"),
        ("gn:1,,lp:0.1", "'' is no defence"),
    ],
)
def test_what_cannot_be_parsed_says_what_is_allowed(text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_defences(text)
    assert message in str(caught.value)


def test_no_text_is_no_defence() -> None:
    assert parse_defences("") == parse_defences("  ") == ()
