# SPDX-License-Identifier: Apache-2.0
"""Text from files: reviews (.jsonl), pairs of sentences (.tsv), prose (.txt); or computed."""

import json
from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from equivariance.experiments.data.sentences import (
    PairExample,
    TextExample,
    prose,
    reviews,
    sentence_pairs,
)
from equivariance.experiments.errors import ExperimentError
from equivariance.experiments.options import Options, synthetic_count

__all__ = ["TextOptions", "load_pairs", "load_prose", "load_reviews"]


class TextOptions(Options):
    """Where text comes from."""

    data: str = Field(
        "synthetic:1200",
        description="synthetic:N, or a file: .jsonl with text and label, .tsv of premise, "
        "hypothesis and label without a header, .txt of prose.",
    )
    test_data: str = Field(
        "", description="File of the test split, like data; empty: a part of data is held out."
    )
    holdout: float = Field(0.2, gt=0, lt=1, description="Share held out if test-data is empty.")
    train_texts: int = Field(0, ge=0, description="At most so many to train on; 0: all.")
    test_texts: int = Field(200, ge=0, description="At most so many to test on; 0: all.")


def load_reviews(options: TextOptions, place: str) -> list[TextExample]:
    """Load texts with their label, 0 or 1; `place` is the value of an option."""
    count = synthetic_count(place)
    if count is not None:
        return reviews(count, seed=options.seed)
    found = []
    for number, line in _lines(place, ".jsonl"):
        try:
            record = json.loads(line)
            found.append((str(record["text"]), int(record["label"])))
        except (ValueError, KeyError, TypeError) as error:
            raise ExperimentError(
                f"{place}, line {number}: wants an object with text and label (a whole number)"
            ) from error
    return found


def load_pairs(options: TextOptions, place: str) -> list[PairExample]:
    """Load pairs of sentences with their label, 0, 1 or 2."""
    count = synthetic_count(place)
    if count is not None:
        return sentence_pairs(count, seed=options.seed)
    found = []
    for number, line in _lines(place, ".tsv"):
        cells = line.rstrip("\r\n").split("\t")
        if len(cells) != 3 or cells[2].strip() not in ("0", "1", "2"):
            raise ExperimentError(
                f"{place}, line {number}: wants premise, hypothesis and label (0, 1 or 2), apart "
                f"by tabs"
            )
        found.append((cells[0], cells[1], int(cells[2])))
    return found


def load_prose(options: TextOptions, place: str, *, seed: int) -> str:
    """Load running text; of computed text, N sentences by `seed`."""
    count = synthetic_count(place)
    if count is not None:
        return prose(count, seed=seed)
    return "\n".join(line for _, line in _lines(place, ".txt"))


def _lines(place: str, suffix: str) -> Iterator[tuple[int, str]]:
    path = Path(place).expanduser()
    if path.suffix != suffix:
        raise ExperimentError(f"data = {place}: allowed are synthetic:N or a file *{suffix}")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ExperimentError(f"data = {place}: cannot be read as UTF-8 text: {error}") from error
    # Not splitlines: it also splits at separators that JSON texts may hold.
    lines = [pair for pair in enumerate(text.split("\n"), 1) if pair[1].strip()]
    if not lines:
        raise ExperimentError(f"data = {place}: is empty")
    yield from lines
