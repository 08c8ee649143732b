# SPDX-License-Identifier: Apache-2.0
"""`bert-snli`: a BERT of two layers trained on padded pairs of sentences under row permutation.

Every sample of every step has a fresh permutation of its tokens, padding included; the padding
mask moves along. The negative control leaves the mask where it was.
"""

import pandas as pd

from equivariance.experiments.data.texts import load_pairs
from equivariance.experiments.errors import ExperimentError
from equivariance.experiments.models.language import (
    LanguageOptions,
    bert_classifier,
    encode,
    tokenizer_for,
)
from equivariance.experiments.results import Results
from equivariance.experiments.sandwich import fresh_rows, permuted
from equivariance.experiments.text_classification import held_out
from equivariance.experiments.training import evaluate
from equivariance.experiments.twins import (
    compare_test_time,
    compare_training,
    forward_tolerance,
    secret_of,
)

__all__ = ["BertSnliOptions", "run"]

# SNLI, in percent.
PAPER = {"plain": 76.4, "row": 76.5}
QUANTITY = "accuracy %"


class BertSnliOptions(LanguageOptions):
    """Those of `LanguageOptions`; the paper's BERT has two layers and is trained from scratch."""


def run(options: BertSnliOptions) -> pd.DataFrame:
    """Return the table; accuracies in percent."""
    pairs = load_pairs(options, options.data)
    tests = load_pairs(options, options.test_data) if options.test_data else []
    tokenizer = tokenizer_for(options, [text for pair in pairs for text in pair[:2]])
    examples, more = (
        encode(
            tokenizer, [pair[:2] for pair in part], [pair[2] for pair in part], options.max_length
        )
        if part
        else None
        for part in (pairs, tests)
    )
    assert examples is not None
    train, test = held_out(examples, more, options)
    lengths = test.inputs["attention_mask"].sum(1)
    if bool((lengths == lengths[0]).all()):
        raise ExperimentError(
            f"test-texts = {options.test_texts}: all {len(test)} have one length, so none is "
            f"padded, and nothing shows what a mask that stays behind does"
        )
    results = Results()
    subject = compare_training(
        results,
        bert_classifier(options, tokenizer, 3),
        train,
        lambda model: evaluate(model, test, options),
        options,
        quantity=QUANTITY,
        cases=("row",),
        paper=PAPER,
    )
    plain = compare_test_time(
        results,
        subject,
        lambda model: evaluate(model, test, options),
        options,
        quantity=QUANTITY,
        cases=("row",),
        paper={},
    )
    rows = fresh_rows(secret_of(options, "rows"))
    with permuted(subject.blocks, rows=rows, masks=False):
        found = evaluate(subject.model, test, options)
    # How much an attended padding token changes depends on training; it is never rounding.
    results.different(
        "outputs",
        "row, mask not permuted",
        found.outputs,
        plain.outputs,
        tolerance=10**4 * forward_tolerance(options) if options.dtype == "float64" else 1e-3,
    )
    return results.frame()
