# SPDX-License-Identifier: Apache-2.0
"""What an attacker found, scored beside what one has without attacking.

Floors: the mean auxiliary image, a random other image, the attacker before it learned, and chance.
A number means something only beside them.
"""

import math
from collections.abc import Callable, Mapping
from functools import cached_property

import torch
from torch import Tensor

from attacks.attacker import AttackOptions, Finding
from attacks.images import unit_images
from attacks.metrics import (
    MetricResult,
    check_metrics,
    face_embedder,
    mean_image,
    metrics_of,
    random_other,
    score_attributes,
    score_positions,
    score_reconstructions,
)
from attacks.scene import Scene
from split import derive_seed

__all__ = ["Judge"]

NONE = math.nan

Score = Callable[[Tensor], list[MetricResult]]


class Judge:
    """Scores findings about the victims of a scene.

    Parameters
    ----------
    scene : Scene
    options : AttackOptions

    Raises
    ------
    AttackError
        If the images cannot be scored as ``options`` ask.
    """

    def __init__(self, scene: Scene, options: AttackOptions) -> None:
        self.scene = scene
        self.seed = derive_seed(options.seed, "floors")
        self.metrics = [*metrics_of(options.metrics), *(["f_sim"] if options.face else [])]
        check_metrics(self.metrics, scene.geometry.image_size)
        self.embedder = face_embedder(options.face) if options.face else None

    def score(self, finding: Finding, untrained: Finding | None) -> list[dict[str, object]]:
        """Columns ``metric`` to ``count`` of :data:`reports.schemas.ATTACKS`, a row a metric."""
        rows: list[dict[str, object]] = []
        if finding.images is not None:
            before = self._values(self._of_images, untrained.images if untrained else None)
            for result in self._of_images(finding.images):
                rows.append(
                    _row(
                        result,
                        mean=self._mean_image[result.metric],
                        random=self._random_image[result.metric],
                        untrained=before.get(result.metric, NONE),
                    )
                )
        if finding.places is not None:
            before = self._values(self._of_places, untrained.places if untrained else None)
            chance = 1 / self.scene.geometry.patches
            for result in self._of_places(finding.places):
                rows.append(_row(result, untrained=before.get(result.metric, NONE), chance=chance))
        if finding.scores is not None:
            before = self._values(self._of_scores, untrained.scores if untrained else None)
            for result in self._of_scores(finding.scores):
                chance = self._guess(result.metric)
                rows.append(_row(result, untrained=before.get(result.metric, NONE), chance=chance))
        return rows

    def _values(self, score: Score, what: Tensor | None) -> Mapping[str, float]:
        return {} if what is None else {r.metric: r.value for r in score(what)}

    def _of_images(self, images: Tensor) -> list[MetricResult]:
        return score_reconstructions(
            self.scene.truth.images,
            images,
            metrics=self.metrics,
            embedder=self.embedder,
            seed=self.seed,
        )

    def _of_places(self, places: Tensor) -> list[MetricResult]:
        """Of patch tokens alone: a prefix token is easily told, and worth nothing."""
        truth, prefix = self.scene.truth.orders, self.scene.geometry.prefix
        patch = truth >= prefix
        shape = (len(truth), self.scene.geometry.patches)
        return score_positions(places[patch].view(shape), truth[patch].view(shape), seed=self.seed)

    def _of_scores(self, scores: Tensor) -> list[MetricResult]:
        return score_attributes(scores, self.scene.truth.labels, seed=self.seed)

    def _guess(self, metric: str) -> float:
        """The score of always answering what is more frequent among auxiliary images."""
        if metric != "accuracy":
            return 0.5
        common = torch.from_numpy(self.scene.auxiliary.labels).float().mean(dim=0) > 0.5
        return float((self.scene.truth.labels == common.float()).float().mean())

    @cached_property
    def _mean_image(self) -> dict[str, float]:
        auxiliary = unit_images(self.scene.auxiliary.images)
        images = mean_image(auxiliary).expand_as(self.scene.truth.images)
        return {r.metric: r.value for r in self._of_images(images)}

    @cached_property
    def _random_image(self) -> dict[str, float]:
        auxiliary = unit_images(self.scene.auxiliary.images)
        images = random_other(auxiliary, len(self.scene.truth.images), seed=self.seed)
        return {r.metric: r.value for r in self._of_images(images)}


def _row(
    result: MetricResult,
    *,
    mean: float = NONE,
    random: float = NONE,
    untrained: float = NONE,
    chance: float = NONE,
) -> dict[str, object]:
    return {
        "metric": result.metric,
        "value": result.value,
        "low": result.low,
        "high": result.high,
        "floor_mean_image": mean,
        "floor_random_image": random,
        "floor_untrained": untrained,
        "floor_chance": chance,
        "embedder": result.embedder,
        "count": result.count,
    }
