# SPDX-License-Identifier: Apache-2.0
"""The keyed stream: pinned to known answers, and its permutations look uniform."""

import numpy as np
import torch

from equivariance import Secret, check_permutation, random_permutations, uniform_words

KEY = Secret.from_hex("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")
ZERO = Secret(bytes(32))


def test_words_are_chacha20() -> None:
    """RFC 8439, appendix A.1, test vector 1: key, nonce and counter zero."""
    stream = bytes.fromhex("76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7")
    expected = [int.from_bytes(stream[i : i + 8], "little") for i in range(0, 32, 8)]
    words = uniform_words(ZERO, 4)
    assert words.dtype == np.uint64
    assert words.tolist() == expected


def test_permutations_are_the_known_ones() -> None:
    """Pins the format: a change here makes every key file and locked model unusable."""
    assert random_permutations(KEY, count=2, length=8).tolist() == [
        [7, 6, 1, 5, 0, 3, 4, 2],
        [1, 5, 2, 3, 4, 7, 6, 0],
    ]


def test_each_is_a_permutation_and_a_prefix_of_more() -> None:
    many = random_permutations(KEY, count=50, length=197)
    assert many.shape == (50, 197)
    assert many.dtype == torch.int64
    check_permutation(many)
    assert torch.equal(random_permutations(KEY, count=7, length=197), many[:7])
    assert len({tuple(order) for order in many.tolist()}) == 50
    assert random_permutations(KEY, count=0, length=5).shape == (0, 5)


def test_every_entry_is_equally_often_at_every_position() -> None:
    """Chi-square of positions; (length - 1)^2 = 225 degrees of freedom, so 225 +- 21."""
    count, length = 20_000, 16
    orders = random_permutations(KEY, count=count, length=length)
    table = torch.stack([orders[:, i].bincount(minlength=length) for i in range(length)]).double()
    expected = count / length
    chi_square = float(((table - expected) ** 2 / expected).sum())
    assert 225 - 5 * 21 < chi_square < 225 + 5 * 21


def test_every_permutation_of_four_is_equally_often() -> None:
    """Chi-square of whole permutations; 23 degrees of freedom, so 23 +- 7."""
    orders = random_permutations(KEY, count=24_000, length=4)
    counts = torch.unique(orders, dim=0, return_counts=True)[1].double()
    assert len(counts) == 24
    assert 1 < float(((counts - 1000) ** 2 / 1000).sum()) < 23 + 5 * 7
