# SPDX-License-Identifier: Apache-2.0
"""The attributes can be learnt from the pixels: a linear model beats the majority by far."""

import numpy as np

from clients.faces import generate_faces

TRAIN, TEST, SIZE = 450, 150, 24
RIDGE = 30.0
MARGIN = 0.05


def test_a_linear_model_on_new_identities_beats_the_majority() -> None:
    images, attributes, identities = generate_faces(TRAIN + TEST, size=SIZE)
    assert set(identities[:TRAIN]).isdisjoint(identities[TRAIN:])
    pixels = images.reshape(len(images), -1) / 127.5 - 1.0
    pixels -= pixels[:TRAIN].mean(axis=0)
    targets = attributes * 2.0 - 1.0
    bias = targets[:TRAIN].mean(axis=0)

    gram = pixels[:TRAIN] @ pixels[:TRAIN].T
    dual = np.linalg.solve(gram + RIDGE * np.eye(TRAIN), targets[:TRAIN] - bias)
    scores = pixels[TRAIN:] @ pixels[:TRAIN].T @ dual + bias

    accuracy = ((scores > 0) == (attributes[TRAIN:] == 1)).mean()
    majority = ((bias > 0) == (attributes[TRAIN:] == 1)).mean()
    assert accuracy > majority + MARGIN
