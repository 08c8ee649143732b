# SPDX-License-Identifier: Apache-2.0
"""In which order a client meets its own images: a pure function of the step."""

import numpy as np
from numpy.typing import NDArray

from split import derive_seed


def training_rows(
    count: int, batch: int, position: int, *, seed: int, client: int
) -> NDArray[np.int64]:
    """The rows of the batch at ``position`` (0, 1, ... over the whole run).

    The batches cut an endless row of shuffled epochs into equal pieces: no image is seen twice
    before all have been seen once, and none is left out at an epoch's end.

    Parameters
    ----------
    count : int
        Images of the client.
    batch : int
        Images of a batch; a client with fewer images takes them all.
    """
    batch = min(batch, count)
    slots = np.arange(position * batch, (position + 1) * batch)
    rows = np.empty(batch, dtype=np.int64)
    for epoch in np.unique(slots // count):
        shuffled = np.random.default_rng(
            derive_seed(seed, "order", client, int(epoch))
        ).permutation(count)
        inside = slots // count == epoch
        rows[inside] = shuffled[slots[inside] % count]
    return rows


def evaluation_rows(count: int, batch: int, index: int) -> NDArray[np.int64]:
    """The rows of evaluation batch ``index``, in order; the last one may be smaller."""
    return np.arange(index * batch, min((index + 1) * batch, count))
