# SPDX-License-Identifier: Apache-2.0
"""The data set: determinism, independence of the count, shapes, and errors of bad input."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from clients.faces import (
    IMAGES_PER_IDENTITY,
    describe_face,
    draw_face,
    generate_faces,
    render_face,
)
from clients.faces.__main__ import contact_sheet

ROOT = Path(__file__).parents[3]
DIGEST = """
import hashlib
from clients.faces import generate_faces
print(hashlib.sha256(b"".join(part.tobytes() for part in generate_faces(12, size=32))).hexdigest())
"""


@pytest.mark.parametrize("size", [16, 31, 64, 224, 512])
def test_shapes_types_and_content(size: int) -> None:
    image, attributes, identity = render_face(25, size=size)
    assert image.shape == (size, size, 3)
    assert image.dtype == np.uint8
    assert image.std() > 20
    assert attributes.shape == (40,)
    assert attributes.dtype == np.uint8
    assert set(attributes.tolist()) <= {0, 1}
    assert identity == 25 // IMAGES_PER_IDENTITY


def test_a_data_set_is_its_images_whatever_its_count() -> None:
    images, attributes, identities = generate_faces(13, size=32, seed=5)
    assert identities.dtype == np.int64
    np.testing.assert_array_equal(images[:7], generate_faces(7, size=32, seed=5)[0])
    for index in (12, 3):
        image, vector, identity = render_face(index, size=32, seed=5)
        np.testing.assert_array_equal(image, images[index])
        np.testing.assert_array_equal(vector, attributes[index])
        assert identity == identities[index]


def test_another_process_draws_the_same_bytes() -> None:
    here = hashlib.sha256(b"".join(part.tobytes() for part in generate_faces(12, size=32)))
    there = subprocess.run(
        [sys.executable, "-c", DIGEST],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "77", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.strip() == here.hexdigest()


def test_seeds_and_indices_give_different_pictures() -> None:
    pictures = {
        render_face(index, size=32, seed=seed)[0].tobytes()
        for index in range(20)
        for seed in range(2)
    }
    assert len(pictures) == 40


def test_an_empty_data_set_keeps_its_shapes() -> None:
    images, attributes, identities = generate_faces(0, size=48)
    assert images.shape == (0, 48, 48, 3)
    assert attributes.shape == (0, 40)
    assert identities.shape == (0,)


def test_sizes_show_the_same_face() -> None:
    small = render_face(4, size=32)[0].astype(float)
    large = render_face(4, size=128)[0].astype(float).reshape(32, 4, 32, 4, 3).mean(axis=(1, 3))
    assert np.abs(small - large).mean() < 6


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: render_face(0, size=15), "size: got 15, allowed is 16 to 512"),
        (lambda: render_face(0, size=513), "size: got 513, allowed is 16 to 512"),
        (lambda: render_face(-1, size=32), "index: got -1, allowed is 0 or more"),
        (lambda: render_face(0, size=32, seed=-2), "seed: got -2, allowed is 0 or more"),
        (lambda: generate_faces(-3, size=32), "count: got -3, allowed is 0 or more"),
        (lambda: generate_faces(0, size=8), "size: got 8, allowed is 16 to 512"),
        (lambda: generate_faces(0, size=32, seed=-1), "seed: got -1, allowed is 0 or more"),
        (lambda: draw_face(describe_face(0), 1000), "size: got 1000, allowed is 16 to 512"),
        (lambda: describe_face(0).toggled("Beard"), "name: got 'Beard', allowed is one of"),
    ],
)
def test_bad_input_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_contact_sheet_fills_rows() -> None:
    images = generate_faces(5, size=16)[0]
    sheet = contact_sheet(images, 3)
    assert sheet.shape == (32, 48, 3)
    np.testing.assert_array_equal(sheet[16:, 16:32], images[4])
