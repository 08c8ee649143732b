# SPDX-License-Identifier: Apache-2.0
"""`vit-training`: training under row or column permutation is the plain training.

Row: every step and sample has a fresh permutation, and weights come out identical. Column: one
permutation for all of it, and weights come out conjugated. The paper reports accuracies that are
close; what the theory claims, and what is shown here, is that they are equal to rounding. Its
differences come from separate runs, not from the permutation.
"""

import pandas as pd
from pydantic import Field

from equivariance.experiments.data.images import load_images
from equivariance.experiments.models.vit import ViTOptions, build_vit, for_model
from equivariance.experiments.results import Results
from equivariance.experiments.training import evaluate
from equivariance.experiments.twins import compare_training

__all__ = ["ViTTrainingOptions", "run"]

# CIFAR-10, ViT-B, in percent.
PAPER = {"plain": 97.75, "row": 97.73, "column": 97.94}


class ViTTrainingOptions(ViTOptions):
    """Three trainings in place of one, so fewer steps by default."""

    steps: int = Field(100, ge=1, description="Optimiser steps.")


def run(options: ViTTrainingOptions) -> pd.DataFrame:
    """Return the table; accuracies in percent."""
    data = load_images(options)
    subject = build_vit(options, data.classes)
    data = for_model(data, subject, options)
    results = Results()
    compare_training(
        results,
        subject,
        data.train,
        lambda model: evaluate(model, data.test, options),
        options,
        quantity="accuracy %",
        cases=("row", "column"),
        paper=PAPER,
    )
    return results.frame()
