# SPDX-License-Identifier: Apache-2.0
"""Computed text: reviews, sentence pairs and prose from small word lists, by a seed.

The offline default of text experiments. What must be learnt is real but easy: reviews lean to one
side by most of their adjectives; a hypothesis follows from its premise, is open, or contradicts it;
prose follows a grammar, so that its next word can be guessed.
"""

import random

__all__ = ["PairExample", "TextExample", "prose", "reviews", "sentence_pairs"]

TextExample = tuple[str, int]
PairExample = tuple[str, str, int]

_GOOD = ("great", "lovely", "moving", "clever", "funny", "superb", "fresh", "gripping")
_BAD = ("awful", "boring", "clumsy", "stale", "weak", "tedious", "silly", "dreadful")
_PARTS = ("plot", "cast", "music", "ending", "script", "camera", "story", "hero")
_FILLER = (
    "i saw it last week",
    "my friends came along",
    "it runs for two hours",
    "the room was full",
    "we talked about it later",
)
_PEOPLE = {"man": "person", "woman": "person", "boy": "child", "girl": "child"}
_ANIMALS = {"dog": "animal", "cat": "animal", "horse": "animal"}
_ACTIONS = {"runs": "moves", "walks": "moves", "sleeps": "rests", "sits": "rests"}
_PLACES = ("park", "street", "house", "garden", "beach")
_COLOURS = ("red", "blue", "green", "old", "small")


def reviews(count: int, *, seed: int) -> list[TextExample]:
    """Return reviews with their side: 0 negative, 1 positive, alternating."""
    draw = random.Random(f"reviews {seed}")
    return [(_review(draw, index % 2), index % 2) for index in range(count)]


def sentence_pairs(count: int, *, seed: int) -> list[PairExample]:
    """Return premise, hypothesis and label: 0 entailment, 1 neutral, 2 contradiction, in turn."""
    draw = random.Random(f"pairs {seed}")
    return [_pair(draw, index % 3) for index in range(count)]


def prose(sentences: int, *, seed: int) -> str:
    """Return sentences, one after another."""
    draw = random.Random(f"prose {seed}")
    return " ".join(_sentence(draw) for _ in range(sentences))


def _review(draw: random.Random, side: int) -> str:
    said = []
    for _ in range(draw.randint(2, 5)):
        agrees = draw.random() < 0.85
        words = _GOOD if agrees == bool(side) else _BAD
        said.append(f"the {draw.choice(_PARTS)} is {draw.choice(words)}")
    said += draw.sample(_FILLER, draw.randint(0, 3))
    draw.shuffle(said)
    return " . ".join(said) + " ."


def _pair(draw: random.Random, label: int) -> PairExample:
    subjects = _PEOPLE | _ANIMALS
    who, action, place = draw.choice([*subjects]), draw.choice([*_ACTIONS]), draw.choice(_PLACES)
    premise = f"a {draw.choice(_COLOURS)} {who} {action} in the {place}"
    if label == 0:
        return premise, f"a {subjects[who]} {_ACTIONS[action]}", label
    if label == 1:
        return premise, f"a {who} {action} because it is {draw.choice(_COLOURS)}", label
    other = draw.choice([name for name, kind in _ACTIONS.items() if kind != _ACTIONS[action]])
    return premise, f"a {who} {_ACTIONS[other]} in the {place}", label


def _sentence(draw: random.Random) -> str:
    subjects = _PEOPLE | _ANIMALS
    who, action = draw.choice([*subjects]), draw.choice([*_ACTIONS])
    more = ""
    if draw.random() < 0.4:
        more = f" and the {draw.choice([*subjects])} {draw.choice([*_ACTIONS])}"
    colour = draw.choice(_COLOURS)
    return f"the {colour} {who} {action} in the {draw.choice(_PLACES)}{more} ."
