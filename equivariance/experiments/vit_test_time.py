# SPDX-License-Identifier: Apache-2.0
"""`vit-test-time`: a trained ViT permuted by rows and columns predicts as it did plain.

The column-permuted model on plain inputs, which is what a thief of the weights would run, is at
chance. A single key can be lucky by some points, so the mean over several is taken.
"""

from statistics import mean
from typing import Literal

import pandas as pd
from pydantic import Field

from equivariance.experiments.data.images import load_images
from equivariance.experiments.models.vit import ViTOptions, build_vit, fit_vit, for_model
from equivariance.experiments.results import Results
from equivariance.experiments.training import evaluate
from equivariance.experiments.twins import compare_test_time, secret_of

__all__ = ["ViTTestTimeOptions", "run"]

# CIFAR-10, ViT-B, in percent.
PAPER = {"plain": 97.65, "row": 97.65, "column": 97.65}
PAPER_PLAIN_INPUTS = 10.0


class ViTTestTimeOptions(ViTOptions):
    """`fit` decides how the model comes to be trained."""

    fit: Literal["all", "probe"] = Field(
        "all", description="all: train the model; probe: only the head, on given weights."
    )
    keys: int = Field(5, ge=1, description="Column keys over which plain inputs are averaged.")


def run(options: ViTTestTimeOptions) -> pd.DataFrame:
    """Return the table; accuracies in percent."""
    data = load_images(options)
    subject = build_vit(options, data.classes)
    data = for_model(data, subject, options)
    fit_vit(subject, data.train, options, fit=options.fit)
    results = Results()
    plain = compare_test_time(
        results,
        subject,
        lambda model: evaluate(model, data.test, options),
        options,
        quantity="accuracy %",
        cases=("row", "column", "row and column"),
        paper=PAPER,
    )
    found = [
        evaluate(
            subject.conjugated(subject.column_order(secret_of(options, "columns", key))).model,
            data.test,
            options,
        )
        for key in range(options.keys)
    ]
    case = "column model, plain inputs"
    results.at_chance(
        "accuracy %",
        case,
        mean(one.score for one in found),
        100 / data.classes,
        plain=plain.score,
        tolerance=10.0,
        paper=PAPER_PLAIN_INPUTS,
    )
    results.different("outputs", case, found[0].outputs, plain.outputs)
    return results.frame()
