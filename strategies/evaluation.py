# SPDX-License-Identifier: Apache-2.0
"""Utility from the counts that clients send: accuracy, balanced accuracy, and the floor."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

ALL_CLIENTS = -1


@dataclass(frozen=True)
class Counts:
    """What an evaluation counted, per attribute ``[K]``, and the mean loss."""

    images: int
    loss: float
    positives: NDArray[np.int64]
    true_positives: NDArray[np.int64]
    true_negatives: NDArray[np.int64]

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> "Counts":
        """From a client's metrics."""
        return cls(
            int(told["images"]),
            float(told["loss"]),
            *(
                np.asarray(told[name], dtype=np.int64)
                for name in ("positives", "true-positives", "true-negatives")
            ),
        )

    @classmethod
    def pooled(cls, counts: list["Counts"]) -> "Counts":
        """Of several clients, as if their images were one set."""
        images = sum(one.images for one in counts)
        return cls(
            images,
            sum(one.loss * one.images for one in counts) / images,
            np.sum([one.positives for one in counts], axis=0),
            np.sum([one.true_positives for one in counts], axis=0),
            np.sum([one.true_negatives for one in counts], axis=0),
        )

    def accuracy(self) -> NDArray[np.float64]:
        """Share of right predictions."""
        return (self.true_positives + self.true_negatives) / self.images

    def balanced_accuracy(self) -> NDArray[np.float64]:
        """Mean recall over the classes that are present."""
        negatives = self.images - self.positives
        with np.errstate(divide="ignore", invalid="ignore"):
            recalls = np.stack(
                [self.true_positives / self.positives, self.true_negatives / negatives]
            )
        return np.asarray(np.nanmean(recalls, axis=0))

    def floor(self) -> NDArray[np.float64]:
        """Accuracy of always saying the majority class of this very split."""
        share = self.positives / self.images
        return np.maximum(share, 1 - share)


def utility_rows(
    counts: Mapping[int, Counts], *, round: int, split: str, attributes: tuple[str, ...]
) -> list[dict[str, object]]:
    """Rows of the run's metrics table: per attribute over all clients, and means per client."""
    pooled = Counts.pooled(list(counts.values()))

    def row(
        client: int, attribute: str, metric: str, value: float, images: int
    ) -> dict[str, object]:
        return {
            "round": round,
            "split": split,
            "client": client,
            "attribute": attribute,
            "metric": metric,
            "value": float(value),
            "count": images,
        }

    rows = []
    for client, one in ((ALL_CLIENTS, pooled), *sorted(counts.items())):
        rows.append(row(client, "mean", "loss", one.loss, one.images))
        for metric in ("accuracy", "balanced_accuracy", "floor"):
            values = getattr(one, metric)()
            rows.append(row(client, "mean", metric, values.mean(), one.images))
            if client == ALL_CLIENTS:
                rows += [
                    row(client, attribute, metric, value, one.images)
                    for attribute, value in zip(attributes, values, strict=True)
                ]
    return rows
