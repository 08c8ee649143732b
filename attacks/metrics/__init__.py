# SPDX-License-Identifier: Apache-2.0
"""How much an attacker got back: per image, then the mean with a bootstrap interval."""

from attacks.metrics.face_choice import TIMM, check_face, face_embedder
from attacks.metrics.face_onnx import FaceInput, OnnxEmbedder
from attacks.metrics.face_timm import TimmEmbedder
from attacks.metrics.faces import FaceEmbedder, f_sim
from attacks.metrics.images import (
    IMAGE_METRICS,
    check_metrics,
    mean_image,
    metrics_of,
    random_other,
    score_reconstructions,
)
from attacks.metrics.labels import auc, balanced_accuracy, score_attributes
from attacks.metrics.places import score_positions
from attacks.metrics.result import MetricResult, bootstrap_interval, mean_result

__all__ = [
    "IMAGE_METRICS",
    "TIMM",
    "FaceEmbedder",
    "FaceInput",
    "MetricResult",
    "OnnxEmbedder",
    "TimmEmbedder",
    "auc",
    "balanced_accuracy",
    "bootstrap_interval",
    "check_face",
    "check_metrics",
    "f_sim",
    "face_embedder",
    "mean_image",
    "mean_result",
    "metrics_of",
    "random_other",
    "score_attributes",
    "score_positions",
    "score_reconstructions",
]
