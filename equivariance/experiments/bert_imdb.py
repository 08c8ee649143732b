# SPDX-License-Identifier: Apache-2.0
"""`bert-imdb`: full BERT on padded batches under a column permutation, trained and at test time.

The padding mask acts between tokens, which a column permutation leaves where they are.
"""

import pandas as pd

from equivariance.experiments.models.language import bert_classifier
from equivariance.experiments.text_classification import ReviewOptions, classify_reviews

__all__ = ["BertImdbOptions", "run"]


class BertImdbOptions(ReviewOptions):
    """Those of `ReviewOptions`."""


def run(options: BertImdbOptions) -> pd.DataFrame:
    """Return the table; accuracies in percent."""
    return classify_reviews(
        options,
        bert_classifier,
        paper_trained={"plain": 94.00, "column": 93.72},
        paper_test_time={"plain": 94.00, "column": 94.00, "column model, plain inputs": 50.0},
    )
