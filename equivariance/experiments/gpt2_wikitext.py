# SPDX-License-Identifier: Apache-2.0
"""`gpt2-wikitext`: the perplexity of GPT-2 under a column permutation.

The test text is cut into pieces of `max-length` tokens, of which each predicts all tokens but its
first. Perplexity is per token of the tokenizer, so numbers of two tokenizers do not compare.
"""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from equivariance.experiments.data.texts import load_prose
from equivariance.experiments.errors import ExperimentError
from equivariance.experiments.examples import Batch, Examples, sequential
from equivariance.experiments.models.language import (
    LanguageOptions,
    gpt2_language_model,
    tokenizer_for,
)
from equivariance.experiments.results import Results
from equivariance.experiments.training import Measured, scores
from equivariance.experiments.twins import compare_test_time, compare_training, secret_of

__all__ = ["Gpt2WikitextOptions", "run"]

PAPER = {"plain": 48.55, "column": 48.55}
PAPER_PLAIN_INPUTS = 1e7
QUANTITY = "perplexity"


class Gpt2WikitextOptions(LanguageOptions):
    """Prose and a language model; `steps` 0 measures a given model as it is."""

    max_length: int = Field(32, ge=4, description="Tokens of a piece.")
    lr: float = Field(5e-3, gt=0, description="Learning rate, falling to zero along a cosine.")


def run(options: Gpt2WikitextOptions) -> pd.DataFrame:
    """Return the table."""
    text = load_prose(options, options.data, seed=2 * options.seed)
    place = options.test_data or (options.data if options.data.startswith("synthetic:") else "")
    tokenizer = tokenizer_for(options, [text])
    pieces = _pieces(tokenizer, text, options.max_length)
    if place:
        test = _pieces(
            tokenizer,
            load_prose(options, place, seed=2 * options.seed + 1),
            options.max_length,
        )
        train = pieces
    else:
        train, test = pieces.split(options.holdout, options.seed)
    train, test = train.first(options.train_texts), test.first(options.test_texts)
    results = Results()

    def measure(model: nn.Module) -> Measured:
        return _perplexity(model, test, options)

    subject = gpt2_language_model(options, tokenizer)
    if options.steps:
        subject = compare_training(
            results,
            subject,
            train,
            measure,
            options,
            quantity=QUANTITY,
            cases=("column",),
            paper={},
            loss=_loss,
        )
    plain = compare_test_time(
        results, subject, measure, options, quantity=QUANTITY, cases=("column",), paper=PAPER
    )
    order = subject.column_order(secret_of(options, "columns"))
    found, case = measure(subject.conjugated(order).model), "column model, plain inputs"
    results.worse(
        QUANTITY,
        case,
        found.score,
        plain.score,
        tolerance=0.1 * plain.score,
        higher_is_better=False,
        paper=PAPER_PLAIN_INPUTS,
    )
    results.different("outputs", case, found.outputs, plain.outputs)
    return results.frame()


def _pieces(tokenizer: Any, text: str, length: int) -> Examples:
    tokens: Sequence[int] = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
    count = len(tokens) // length
    if count < 2:
        raise ExperimentError(
            f"data: has {len(tokens)} tokens; wanted are two pieces of max-length = {length}"
        )
    pieces = torch.tensor(tokens[: count * length]).reshape(count, length)
    return Examples({"input_ids": pieces}, pieces)


def _token_losses(model: nn.Module, batch: Batch) -> Tensor:
    """Negative log-likelihood of every token but the first of a piece, [B, length - 1]."""
    inputs, labels = batch
    found = scores(model(**inputs))[:, :-1]
    return functional.cross_entropy(found.transpose(1, 2), labels[:, 1:], reduction="none")


def _loss(model: nn.Module, batch: Batch) -> Tensor:
    return _token_losses(model, batch).mean()


@torch.no_grad()
def _perplexity(model: nn.Module, examples: Examples, options: LanguageOptions) -> Measured:
    model.eval()
    parts = sequential(examples, size=options.batch_size, device=options.device)
    losses = torch.cat([_token_losses(model, batch).cpu() for batch in parts])
    return Measured(math.exp(min(float(losses.mean()), 700.0)), losses)
