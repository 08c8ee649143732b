# SPDX-License-Identifier: Apache-2.0
"""Images from bytes to what the edge takes, and the crops and flips of the paper."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from clients.augment import crop_and_flip, normalise

quick = settings(deadline=None, max_examples=40, derandomize=True)


def coded(batch: int, side: int) -> NDArray[np.uint8]:
    """Each pixel holds its row, its column (both from 1) and its image."""
    rows, columns = np.mgrid[1 : side + 1, 1 : side + 1]
    images = [np.dstack([rows, columns, np.full_like(rows, i + 1)]) for i in range(batch)]
    return np.stack(images).astype(np.uint8)


@quick
@given(st.integers(1, 4), st.sampled_from([8, 16, 20]), st.integers(0, 999))
def test_an_image_is_shifted_and_flipped_and_no_more(batch: int, side: int, seed: int) -> None:
    pad = side // 8
    cropped = crop_and_flip(coded(batch, side), np.random.default_rng(seed)).astype(int)
    assert cropped.shape == (batch, side, side, 3)
    places = np.arange(1, side + 1)
    for index, image in enumerate(cropped):
        seen = image[..., 2] > 0
        assert set(image[..., 2][seen]) == {index + 1}
        assert not image[~seen].any()
        y, x = np.nonzero(seen)
        down = set(image[y, x, 0] - places[y])
        straight, mirrored = set(image[y, x, 1] - places[x]), set(image[y, x, 1] + places[x])
        assert len(down) == 1
        assert abs(down.pop()) <= pad
        assert min(len(straight), len(mirrored)) == 1
        # What was shifted out is all that is missing.
        assert len(set(y)) >= side - pad
        assert seen.sum() == len(set(y)) * len(set(x))


def test_all_shifts_and_both_flips_occur_alike() -> None:
    cropped = crop_and_flip(coded(1, 16).repeat(4000, 0), np.random.default_rng(0)).astype(int)
    middle = cropped[:, 8, 8]
    shifts = np.bincount(middle[:, 0] - 9 + 2, minlength=5)
    assert len(shifts) == 5
    assert shifts.min() > 0.8 * 4000 / 5
    flipped = (cropped[:, 8, 9, 1] < middle[:, 1]).mean()
    assert flipped == pytest.approx(0.5, abs=0.04)


def test_the_generator_decides_and_the_input_is_left_alone() -> None:
    images = coded(5, 16)
    images.flags.writeable = False
    one, again, other = (crop_and_flip(images, np.random.default_rng(s)) for s in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    assert np.array_equal(images, coded(5, 16))


def test_normalise_is_minus_one_to_one_channels_first() -> None:
    images = np.zeros((1, 2, 2, 3), np.uint8)
    images[0, 0, 1] = [255, 51, 0]
    tensor = normalise(images)
    assert (tensor.shape, tensor.dtype) == ((1, 3, 2, 2), torch.float32)
    torch.testing.assert_close(tensor[0, :, 0, 1], torch.tensor([1.0, -0.6, -1.0]))
    assert tensor[0, :, 0, 0].tolist() == [-1, -1, -1]
