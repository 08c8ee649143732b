# SPDX-License-Identifier: Apache-2.0
"""The two comparisons that most experiments make: at test time, and after training.

Every permuted case is compared with the plain one: the score, the outputs, and after training the
gradient of the first step and the weights, un-conjugated.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal

from torch import Tensor, nn

from equivariance.experiments.examples import Examples
from equivariance.experiments.results import Paper, Results
from equivariance.experiments.sandwich import fresh_rows, permuted
from equivariance.experiments.subject import Subject
from equivariance.experiments.training import Loss, Measured, TrainingOptions, gradients, train
from equivariance.keys import Secret

__all__ = ["Case", "compare_test_time", "compare_training", "forward_tolerance", "secret_of"]

Case = Literal["row", "column", "row and column"]
Measure = Callable[[nn.Module], Measured]

_FORWARD = {"float64": 1e-12, "float32": 1e-4}
# Rounding grows along the steps: after 150 of AdamW up to 1e-6 has been seen in float64.
_TRAINED = {"float64": 1e-5}
# In float32 a score may lose a few examples whose two best classes are within rounding.
_SCORE = {"float64": 0.0, "float32": 5e-3}
_TRAINED_SCORE = {"float64": 0.0, "float32": 3e-2}


def forward_tolerance(options: TrainingOptions) -> float:
    """Relative tolerance of one pass, forward or backward."""
    return _FORWARD[options.dtype]


def secret_of(options: TrainingOptions, *purpose: int | str) -> Secret:
    """Return the key of an experiment for one purpose."""
    return Secret.from_seed(options.seed, "experiment", *purpose)


def compare_test_time(
    results: Results,
    subject: Subject,
    measure: Measure,
    options: TrainingOptions,
    *,
    quantity: str,
    cases: Sequence[Case],
    paper: Mapping[str, Paper],
) -> Measured:
    """Compare one trained model with its permuted selves, and return the plain measurement.

    Parameters
    ----------
    results : Results
        Gets two rows per case: the score (`quantity`) and the outputs.
    subject : Subject
        In evaluation mode.
    measure : callable
        Evaluates a model.
    options : TrainingOptions
        Seed and precision.
    quantity : str
        Name of the score.
    cases : sequence of str
        `row`: a fresh permutation per sample. `column`: one, with conjugated weights.
    paper : mapping of str to float or str
        The paper's score by case; `plain` too.
    """
    plain = measure(subject.model)
    results.measured(quantity, "plain", plain.score, paper=paper.get("plain"))
    tolerance = forward_tolerance(options)
    # A score that is a continuous function of the outputs, as perplexity, only equals to rounding.
    score_tolerance = max(_SCORE[options.dtype], tolerance)
    for case in cases:
        order = _order(subject, options, case)
        twin = subject if order is None else subject.conjugated(order)
        with _permuted(twin, case, order, options):
            found = measure(twin.model)
        results.equal(
            quantity,
            case,
            found.score,
            plain.score,
            tolerance=score_tolerance,
            paper=paper.get(case),
        )
        results.equal("outputs", case, found.outputs, plain.outputs, tolerance=tolerance)
    return plain


def compare_training(
    results: Results,
    subject: Subject,
    examples: Examples,
    measure: Measure,
    options: TrainingOptions,
    *,
    quantity: str,
    cases: Sequence[Case],
    paper: Mapping[str, Paper],
    loss: Loss | None = None,
) -> Subject:
    """Train a model and its permuted selves alike, and return the one that was trained plain.

    Rows per case: the first gradient, the weights and the score. In float32 rounding leads
    trainings apart, so there weights are only measured.
    """
    start = subject.copy()
    plain_gradients = gradients(start.model, examples, options, loss=loss)
    train(start.model, examples, options, loss=loss)
    plain_weights, plain = start.weights(), measure(start.model)
    results.measured(quantity, "trained plain", plain.score, paper=paper.get("plain"))
    for case in cases:
        order = _order(subject, options, case)
        twin = subject.copy() if order is None else subject.conjugated(order)
        with _permuted(twin, case, order, options):
            found_gradients = twin.unconjugate(
                gradients(twin.model, examples, options, loss=loss), order
            )
            train(twin.model, examples, options, loss=loss)
            found = measure(twin.model)
        name = f"trained {case}"
        results.equal(
            "gradients",
            name,
            found_gradients,
            plain_gradients,
            tolerance=forward_tolerance(options),
        )
        _compare_weights(results, name, twin.weights(order), plain_weights, options)
        results.equal(
            quantity,
            name,
            found.score,
            plain.score,
            tolerance=max(_TRAINED_SCORE[options.dtype], _TRAINED.get(options.dtype, 0.0)),
            paper=paper.get(case),
        )
    return start


def _compare_weights(
    results: Results,
    case: str,
    found: Mapping[str, Tensor],
    plain: Mapping[str, Tensor],
    options: TrainingOptions,
) -> None:
    tolerance = _TRAINED.get(options.dtype)
    if tolerance is None:
        gap = max(float((found[name] - plain[name]).abs().max()) for name in plain)
        results.measured("weights, largest difference", case, gap)
    else:
        results.equal("weights", case, found, plain, tolerance=tolerance)


def _order(subject: Subject, options: TrainingOptions, case: Case) -> Tensor | None:
    return subject.column_order(secret_of(options, "columns")) if "column" in case else None


def _permuted(
    subject: Subject, case: Case, order: Tensor | None, options: TrainingOptions
) -> AbstractContextManager[None]:
    rows = fresh_rows(secret_of(options, "rows")) if "row" in case else None
    return permuted(subject.blocks, rows=rows, columns=order)
