# SPDX-License-Identifier: Apache-2.0
"""`authorization`: only who has the column key gets the worth of a locked model.

A pretrained model is locked by conjugation. It is fine-tuned as the plain model (normal), locked
with the key, locked without the key, and, as the floor, from random weights. With the key training
is exactly the normal one; without it the pretraining is hidden, though not destroyed: a thief with
enough data and steps trains a model anyway.
"""

from typing import Literal

import pandas as pd
from pydantic import Field

from equivariance.experiments.data.images import ImageData, load_images
from equivariance.experiments.models.vit import ViTOptions, build_vit, fit_vit, for_model
from equivariance.experiments.results import Paper, Results
from equivariance.experiments.sandwich import permuted
from equivariance.experiments.subject import Subject
from equivariance.experiments.training import evaluate, train
from equivariance.experiments.twins import forward_tolerance, secret_of

__all__ = ["AuthorizationOptions", "run"]

# ViT-B on CIFAR-10, in percent. BERT: 77.25 / 93.72, GPT-2: 86.16 / 93.66 (IMDB).
PAPER: dict[str, Paper] = {"without key": 78.03, "with key": 97.94}
QUANTITY = "accuracy %"


class AuthorizationOptions(ViTOptions):
    """Pretraining happens here unless `weights` are given; fine-tuning has few images and steps."""

    pretrain_steps: int = Field(250, ge=0, description="Steps of pretraining, without weights.")
    fit: Literal["all", "probe"] = Field(
        "all", description="Fine-tuning: all parameters, or the head alone (a linear probe)."
    )
    steps: int = Field(40, ge=1, description="Optimiser steps of fine-tuning.")
    lr: float = Field(1e-3, gt=0, description="Learning rate of fine-tuning, falling to zero.")
    train_images: int = Field(200, ge=0, description="At most so many to fine-tune on; 0: all.")
    margin: float = Field(
        5.0, gt=0, le=100, description="Points by which no key must fall behind the key."
    )


def run(options: AuthorizationOptions) -> pd.DataFrame:
    """Return the table; accuracies in percent."""
    data = load_images(options)
    scratch = build_vit(options.model_copy(update={"weights": ""}), data.classes)
    pretrained = build_vit(options, data.classes) if options.weights else _pretrained(options)
    data = for_model(data, pretrained, options)
    order = pretrained.column_order(secret_of(options, "columns"))
    results = Results()

    plain = pretrained.copy()
    fit_vit(plain, data.train, options, fit=options.fit)
    normal = evaluate(plain.model, data.test, options)
    results.measured(QUANTITY, "normal", normal.score)

    holder = pretrained.conjugated(order)
    with permuted(holder.blocks, columns=order):
        fit_vit(holder, data.train, options, fit=options.fit)
        found = evaluate(holder.model, data.test, options)
    exact = options.dtype == "float64"
    results.equal(
        QUANTITY,
        "with key",
        found.score,
        normal.score,
        tolerance=forward_tolerance(options) if exact else 3e-2,
        paper=PAPER["with key"],
    )
    if exact:
        results.equal("outputs", "with key", found.outputs, normal.outputs, tolerance=1e-6)

    thief = pretrained.conjugated(order)
    _fit_and_compare(results, thief, "without key", data, options, found.score)
    _fit_and_compare(results, scratch, "from scratch", data, options, found.score)
    return results.frame()


def _fit_and_compare(
    results: Results,
    subject: Subject,
    case: str,
    data: ImageData,
    options: AuthorizationOptions,
    with_key: float,
) -> None:
    fit_vit(subject, data.train, options, fit=options.fit)
    score = evaluate(subject.model, data.test, options).score
    results.worse(QUANTITY, case, score, with_key, tolerance=options.margin, paper=PAPER.get(case))


def _pretrained(options: AuthorizationOptions) -> Subject:
    """Train on all images of the training split, then put a fresh head on."""
    everything = load_images(options.model_copy(update={"train_images": 0}))
    subject = build_vit(options, everything.classes)
    head = subject.model.get_submodule("head")
    fresh = {name: tensor.clone() for name, tensor in head.state_dict().items()}
    longer = options.model_copy(update={"steps": options.pretrain_steps, "lr": 2e-3})
    train(subject.model, everything.train, longer)
    head.load_state_dict(fresh)
    return subject
