# SPDX-License-Identifier: Apache-2.0
"""Attacks in plain words: who attacks, knowing what, and what the numbers mean.

This package does not import the attackers, which need torch; a test holds these texts against
their registry.
"""

from collections.abc import Iterable

import pandas as pd

from reports.attack_results import TOLD
from reports.attack_text import METRICS

ATTACKERS = {
    "decoder": "a network that turns the tokens, in the order in which they were received, into an "
    "image (the paper's attacker); it undoes a permutation that lasts, and under a fresh one "
    "it can still learn what the tokens tell of their places, given images and time enough",
    "position": "predicts where each token belongs, from the token alone (`per-token`) and from "
    "the set of all tokens (`set`), makes a permutation of the answers, and decodes the tokens in "
    "that order; `best` is the one of the two that did better on auxiliary people held out",
    "analytic": "linear algebra, at cut 0: inverts the patch embedding (`inverse`), or takes the "
    "best linear guess by the statistics of auxiliary patches (`posterior`), and finds each place "
    "by the position embedding",
    "jigsaw": "turns each token into its patch and lays the patches as a puzzle, by their borders "
    "and by what they show; for tokens that carry no position",
    "optimise": "changes the pixels of an image step by step until the edge makes of it what was "
    "received",
    "attributes": "makes no image: it classifies the attributes of a person from the set of tokens",
}

THREATS = {
    "black-box": "it has images of other people and can have a victim's client process them: with "
    "the defence, and permuted under the client's key; it knows neither weights nor key",
    "known-edge": "it has images of other people, the weights of the edge with its position "
    "embedding, and knows which defence is used, as a server does that averages the clients' "
    "weights; it does not know the key",
    "told-order": "it knows the edge and the defence, and is told the permutation of every sample: "
    "an upper bound, which no comparison of settings counts",
}

MEANINGS = {
    "ssim": "structural similarity of reconstruction and original on [0, 1] images; 1: identical",
    "psnr": "peak signal-to-noise ratio on [0, 1] images; 10 dB more is a tenth of the squared "
    "error",
    "f_sim": "cosine of the face network's embeddings of both; 1: the same face to that network",
    "lpips": "learned perceptual distance; 0: identical, so less means that more came back",
    "ssim_paper": "SSIM as the paper's code computes it, on [-1, 1] images with a range of 1: to "
    "be set beside the paper's numbers, and nothing else",
    "psnr_paper": "PSNR as the paper's code computes it, on [-1, 1] images with a peak of 1, which "
    "reads 6.02 dB low: to be set beside the paper's numbers, and nothing else",
    "position_accuracy": "share of patch tokens put into their own place (0 .. 1)",
    "accuracy": "share of attributes answered rightly (0 .. 1)",
    "balanced_accuracy": "the same with both classes counted alike; 0.5 is guessing",
    "auc": "area under the ROC curve, mean over attributes; 0.5 is guessing",
}

FLOORS = (
    "Floors say what one has without the attack: **mean image**, the mean auxiliary image given "
    "for every victim; **random image**, another person's image; **untrained**, the attacker "
    "before it has learned; **chance**, guessing. A value near its floor shows no recovery, one "
    "that is clearly better shows some. The mean image alone is often a fair likeness in SSIM."
)

REPEATED = (
    " Of an attack that was repeated, this is the newest try, and so are its pictures and curves; "
    "the numbers are those of the try by which most came back."
)

CAUTION = (
    "An attack that fails proves little: a stronger attacker, more auxiliary images or longer "
    "training may succeed. What is called private here withstood these attackers and no others."
)


def attackers(table: pd.DataFrame) -> str:
    """A list of who attacked, and knowing what, from the rows of an attack table."""
    lines = []
    for attack, rows in table.groupby("attack", sort=False):
        knows = [f"`{name}`" for name in dict.fromkeys(rows["threat"])]
        what = ATTACKERS.get(str(attack), "an attacker of its own, not described here")
        lines.append(f"- **`{attack}`** (threat model {' and '.join(knows)}): {what}.")
    known = [f"- `{name}`: {_threat(name)}." for name in dict.fromkeys(table["threat"])]
    return (
        "Every attacker sees the smashed data exactly as the clients sent them, defended and "
        "permuted, and knows the architecture. It learned on auxiliary images that share no person "
        "with the victims. Attackers:\n\n"
        + "\n".join(lines)
        + "\n\nWhat a threat model grants besides:\n\n"
        + "\n".join(known)
    )


def effort(table: pd.DataFrame) -> str:
    """How long attackers learned and from how many images, from the rows of an effort table."""
    tried = []
    for attack, rows in table[table["stage"] != ""].groupby("attack", sort=False):
        stages = [
            f"{'' if stage == attack else f'{stage} '}{_span(sorted(set(epochs)))}"
            for stage, epochs in rows.groupby("stage", sort=False)["epochs"]
        ]
        tried.append(f"`{attack}` {', '.join(stages)}")
    images, people = (
        sorted(set(table.loc[table[column] > 0, column])) for column in ("images", "people")
    )
    parts = []
    if images:
        parts.append(
            f"The attackers had {_span(images)} auxiliary images of {_span(people)} people."
        )
    if tried:
        parts.append(f"Epochs that they learned for: {'; '.join(tried)}.")
    return " ".join(parts) + (REPEATED if parts else "")


def victims(table: pd.DataFrame) -> str:
    """How many images were attacked, of whom, after which round."""
    counts, rounds = sorted(set(table["count"])), sorted(set(table["round"]))
    whose = sorted(set(table["client"]))
    of = "of all clients together" if whose == [-1] else f"of client {_span(whose)}"
    if len(whose) > 1 and -1 in whose:
        of = (
            "of all clients together or of one alone: the one that was asked for, or the one with "
            "the most images where a permutation lasts longer than a batch"
        )
    return (
        f"The victims are {_span(counts)} images of the test split, {of}; the weights are those "
        f"after round {_span(rounds)}."
    )


def meanings(table: pd.DataFrame) -> str:
    """What the metrics in a table mean, their intervals, and their floors."""
    lines = [
        f"- **{METRICS[name]}**: {MEANINGS[name]}."
        for name in METRICS
        if name in set(table["metric"])
    ]
    networks = sorted({name for name in table["embedder"] if name})
    if networks:
        lines.append(f"- The network behind F-SIM or LPIPS: `{'`, `'.join(networks)}`.")
    return (
        "Every value is a mean over images, with a bootstrap interval of 95 % over them.\n\n"
        + "\n".join(lines)
        + f"\n\n{FLOORS}"
        + (f" {_told()}" if set(table["threat"]) & set(TOLD) else "")
        + f"\n\n{CAUTION}"
    )


def _told() -> str:
    names = "`, `".join(TOLD)
    return f"Rows of the threat model `{names}` are upper bounds: that attacker is told the order."


def _threat(name: str) -> str:
    return THREATS.get(name, "a threat model of its own, not described here")


def _span(numbers: Iterable[int]) -> str:
    found = list(numbers)
    return f"{found[0]:,}" if len(found) == 1 else f"{found[0]:,} .. {found[-1]:,}"
