# SPDX-License-Identifier: Apache-2.0
"""Position accuracy."""

import numpy as np
from torch import Tensor

from attacks.errors import AttackError
from attacks.metrics.result import MetricResult, mean_result

__all__ = ["score_positions"]


def score_positions(predicted: Tensor, true: Tensor, *, seed: int) -> list[MetricResult]:
    """``position_accuracy``: the share of tokens put at their place.

    Parameters
    ----------
    predicted, true : Tensor
        Places of the tokens of each image, [M, n].

    Raises
    ------
    AttackError
        If their shapes differ or are no [M, n].
    """
    if predicted.shape != true.shape or true.ndim != 2 or not true.numel():
        raise AttackError(
            f"predicted places: shape is {tuple(predicted.shape)}; allowed is [M, n], as the true "
            f"places' {tuple(true.shape)}"
        )
    right = (predicted == true).double().mean(dim=1).cpu().numpy()
    return [mean_result("position_accuracy", np.asarray(right), seed)]
