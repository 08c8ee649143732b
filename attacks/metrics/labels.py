# SPDX-License-Identifier: Apache-2.0
"""How well attributes were told: accuracy, balanced accuracy, AUC, mean over attributes."""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from attacks.errors import AttackError
from attacks.metrics.result import MetricResult, bootstrap_interval, mean_result

__all__ = ["auc", "balanced_accuracy", "score_attributes"]


def score_attributes(scores: Tensor, labels: Tensor, *, seed: int) -> list[MetricResult]:
    """``accuracy``, ``balanced_accuracy`` and ``auc``; intervals over images.

    Balanced accuracy and AUC leave out attributes that all or none of the images have, and say how
    many; a draw of the bootstrap leaves out what it alone lacks.

    Parameters
    ----------
    scores : Tensor
        Logits, [M, K]; above 0 is a yes.
    labels : Tensor
        0 or 1, [M, K].

    Raises
    ------
    AttackError
        If their shapes differ or are no [M, K], or a score is NaN.
    """
    if scores.shape != labels.shape or labels.ndim != 2 or not labels.numel():
        raise AttackError(
            f"scores: shape is {tuple(scores.shape)}; allowed is [M, K], as the labels' "
            f"{tuple(labels.shape)}"
        )
    s, y = scores.detach().double().cpu().numpy(), labels.cpu().numpy() > 0.5
    if np.isnan(s).any():
        raise AttackError("scores: some are NaN; allowed are numbers")
    left_out = int((y.all(axis=0) | ~y.any(axis=0)).sum())
    accuracy = mean_result("accuracy", ((s > 0) == y).mean(axis=1), seed)
    results = [accuracy]
    for name, statistic in (("balanced_accuracy", balanced_accuracy), ("auc", auc)):
        of = partial(_of_rows, statistic, s, y)
        low, high = bootstrap_interval(of, len(s), seed, draws=200)
        value = statistic(s, y)
        results.append(
            MetricResult(
                metric=name, value=value, low=low, high=high, count=len(s), left_out=left_out
            )
        )
    return results


def _of_rows(
    statistic: Callable[[NDArray[np.float64], NDArray[np.bool_]], float],
    scores: NDArray[np.float64],
    labels: NDArray[np.bool_],
    rows: NDArray[np.int64],
) -> float:
    return statistic(scores[rows], labels[rows])


def balanced_accuracy(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> float:
    """Mean of the shares of yes and of no that were told, over attributes with both; or NaN."""
    positives, negatives = labels.sum(axis=0), (~labels).sum(axis=0)
    both = (positives > 0) & (negatives > 0)
    guess = scores > 0
    yes = (guess & labels).sum(axis=0)[both] / positives[both]
    no = (~guess & ~labels).sum(axis=0)[both] / negatives[both]
    return float(((yes + no) / 2).mean()) if both.any() else float("nan")


def auc(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> float:
    """Area under the ROC curve by ranks, ties counting half; over attributes with both; or NaN."""
    positives, negatives = labels.sum(axis=0), (~labels).sum(axis=0)
    both = (positives > 0) & (negatives > 0)
    if not both.any():
        return float("nan")
    from scipy.stats import rankdata  # takes long to import

    ranks = rankdata(scores[:, both], axis=0)
    above = (ranks * labels[:, both]).sum(axis=0) - positives[both] * (positives[both] + 1) / 2
    return float((above / (positives[both] * negatives[both])).mean())
