# SPDX-License-Identifier: Apache-2.0
"""`gpt2-imdb`: GPT-2 as a classifier under a column permutation, trained and at test time.

Its causal mask breaks row permutations and does not mind column permutations.
"""

import pandas as pd

from equivariance.experiments.models.language import gpt2_classifier
from equivariance.experiments.text_classification import ReviewOptions, classify_reviews

__all__ = ["Gpt2ImdbOptions", "run"]


class Gpt2ImdbOptions(ReviewOptions):
    """Those of `ReviewOptions`."""


def run(options: Gpt2ImdbOptions) -> pd.DataFrame:
    """Return the table; accuracies in percent."""
    return classify_reviews(
        options,
        gpt2_classifier,
        paper_trained={"plain": 94.03, "column": 93.66},
        paper_test_time={"plain": 94.03, "column": 94.03, "column model, plain inputs": 50.0},
    )
