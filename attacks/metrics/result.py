# SPDX-License-Identifier: Apache-2.0
"""A measured value with its bootstrap interval."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attacks.errors import AttackError

__all__ = ["MetricResult", "bootstrap_interval", "mean_result"]

Statistic = Callable[[NDArray[np.int64]], float]
"""A statistic of the images with these indices."""

DRAWS, LEVEL = 1000, 0.95


@dataclass(frozen=True, kw_only=True)
class MetricResult:
    """One metric over images.

    Parameters
    ----------
    metric : str
    value, low, high : float
        Mean over images, or the statistic, and its bootstrap interval of 95 %.
    embedder : str
        The network behind it, ``""`` if none.
    count : int
        Images.
    left_out : int
        Attributes that are no part of the value, since all or none of the images have them.
    """

    metric: str
    value: float
    low: float
    high: float
    embedder: str = ""
    count: int
    left_out: int = 0


def bootstrap_interval(
    statistic: Statistic, count: int, seed: int, *, draws: int = DRAWS, level: float = LEVEL
) -> tuple[float, float]:
    """Percentile interval of a statistic over images drawn with replacement.

    Parameters
    ----------
    statistic : callable
        Of an index array [count].
    count : int
        Images.
    seed : int
        The same seed draws the same images, so that intervals of two attacks compare.
    draws : int
        Samples drawn.
    level : float
        Between 0 and 1.

    Returns
    -------
    low, high : float
        NaN if the statistic is, in every draw; draws in which it is NaN are passed over.

    Raises
    ------
    AttackError
        If there is nothing to draw from, or no draw, or no such level.
    """
    if count < 1 or draws < 1 or not 0 < level < 1:
        raise AttackError(
            f"bootstrap: {count} images, {draws} draws, level {level}; "
            "allowed are 1 or more, 1 or more, between 0 and 1"
        )
    generator = np.random.default_rng(seed)
    values = [statistic(generator.integers(0, count, size=count)) for _ in range(draws)]
    if np.isnan(values).all():
        return float("nan"), float("nan")
    tail = (1 - level) / 2
    low, high = np.nanquantile(values, [tail, 1 - tail])
    return float(low), float(high)


def mean_result(
    metric: str, values: NDArray[np.float64], seed: int, embedder: str = ""
) -> MetricResult:
    """The mean of one value per image."""
    low, high = bootstrap_interval(lambda rows: float(values[rows].mean()), len(values), seed)
    return MetricResult(
        metric=metric,
        value=float(values.mean()),
        low=low,
        high=high,
        embedder=embedder,
        count=len(values),
    )
