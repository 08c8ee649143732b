# SPDX-License-Identifier: Apache-2.0
"""What `bert-imdb` and `gpt2-imdb` share: reviews, column permutation, training and test time."""

from collections.abc import Callable, Mapping
from statistics import mean
from typing import Any

import pandas as pd
from pydantic import Field

from equivariance.experiments.data.texts import load_reviews
from equivariance.experiments.errors import ExperimentError
from equivariance.experiments.examples import Examples
from equivariance.experiments.models.language import LanguageOptions, encode, tokenizer_for
from equivariance.experiments.results import Paper, Results
from equivariance.experiments.subject import Subject
from equivariance.experiments.training import evaluate
from equivariance.experiments.twins import compare_test_time, compare_training, secret_of

__all__ = ["ReviewOptions", "classify_reviews", "held_out"]

QUANTITY = "accuracy %"


class ReviewOptions(LanguageOptions):
    """Reviews and a classifier of them."""

    keys: int = Field(5, ge=1, description="Column keys over which plain inputs are averaged.")


def classify_reviews(
    options: ReviewOptions,
    build: Callable[[LanguageOptions, Any, int], Subject],
    *,
    paper_trained: Mapping[str, Paper],
    paper_test_time: Mapping[str, Paper],
) -> pd.DataFrame:
    """Train plain and under a column permutation, then permute the plain model at test time.

    Parameters
    ----------
    options : ReviewOptions
        What to run.
    build : callable
        From options, tokenizer and number of classes to the model.
    paper_trained, paper_test_time : mapping of str to float or str
        The paper's accuracies by case, in percent.
    """
    texts = load_reviews(options, options.data)
    tests = load_reviews(options, options.test_data) if options.test_data else []
    tokenizer = tokenizer_for(options, [text for text, _ in texts])
    examples, more = (
        encode(tokenizer, [t for t, _ in part], [y for _, y in part], options.max_length)
        if part
        else None
        for part in (texts, tests)
    )
    assert examples is not None
    train, test = held_out(examples, more, options)
    classes = _classes(train, test)
    results = Results()

    def measure(model: Any) -> Any:
        return evaluate(model, test, options)

    subject = compare_training(
        results,
        build(options, tokenizer, classes),
        train,
        measure,
        options,
        quantity=QUANTITY,
        cases=("column",),
        paper=paper_trained,
    )
    plain = compare_test_time(
        results,
        subject,
        measure,
        options,
        quantity=QUANTITY,
        cases=("column",),
        paper=paper_test_time,
    )
    found = [
        measure(subject.conjugated(subject.column_order(secret_of(options, "columns", key))).model)
        for key in range(options.keys)
    ]
    case = "column model, plain inputs"
    results.at_chance(
        QUANTITY,
        case,
        mean(one.score for one in found),
        100 / classes,
        plain=plain.score,
        tolerance=15.0,
        paper=paper_test_time.get(case),
    )
    results.different("outputs", case, found[0].outputs, plain.outputs)
    return results.frame()


def held_out(
    examples: Examples, test: Examples | None, options: LanguageOptions
) -> tuple[Examples, Examples]:
    """Return the training and the test split, cut to their sizes, in the seed's order."""
    train = examples.shuffled(options.seed)
    if test is None:
        train, test = examples.split(options.holdout, options.seed)
    return train.first(options.train_texts), test.shuffled(options.seed).first(options.test_texts)


def _classes(train: Examples, test: Examples) -> int:
    low, high = (int(part.labels.min()) for part in (train, test)), int(train.labels.max())
    if min(low) < 0 or high < 1 or int(test.labels.max()) > high:
        raise ExperimentError(
            "labels: wanted are 0, 1, ..., of two or more classes, in both splits"
        )
    return high + 1
