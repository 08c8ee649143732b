# SPDX-License-Identifier: Apache-2.0
"""A run in plain words: what it was, what protected it, what its utility means."""

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pandas as pd

from reports.display import duration, percent, signed_percent
from reports.run_folder import RunFolder
from reports.utility import Headline

Config = Mapping[str, Any]

DEFENCES = {
    "gn": "Gaussian noise of standard deviation {}",
    "lp": "low-pass filter of radius {}",
    "bs": "batch shuffle ({})",
}
SCHEDULES = {
    "sequential": "clients in turn share one trunk",
    "parallel": "the clients' batches of a step meet the trunk as one batch",
    "splitfed-v1": "a trunk for each client, averaged each round",
    "splitfed-v2": "one trunk, clients in random order",
}
ROTATIONS = {
    "sample": "a fresh permutation for each image",
    "batch": "a fresh permutation for each batch",
    "round": "one permutation for each round",
    "fixed": "one permutation for the whole run",
}
PERMUTATIONS = {
    "row": "Each client permutes its tokens (rows) with a private key before they leave it",
    "column": "The features (columns) of each token are permuted with the model owner's key",
    "row+column": "Tokens (rows) and features (columns) are permuted before they leave a client",
}


def status(run: RunFolder) -> str:
    """One paragraph on how the run stands, with its error if it has one."""
    facts, progress = run.facts(), run.progress()
    times = _times(facts)
    where = _where(progress)
    if facts.get("status") == "finished":
        return f"**Finished.** {times}"
    if facts.get("status") == "running":
        seen = f" Last sign of life: {progress['updated']}{where}." if progress else ""
        return (
            "**Incomplete.** The run is still going, or its process ended without a word; what "
            f"follows covers what it has written so far. {times}{seen}"
        )
    words = "Failed" if facts.get("status") == "failed" else "Stopped before its end"
    last = f" It came as far as{where.removeprefix(',')}." if where else ""
    error = f"\n\n{_quoted(facts['error'])}" if facts.get("error") else ""
    return f"**{words}.** What follows covers what it has written. {times}{last}{error}"


def warnings(facts: Mapping[str, Any]) -> str:
    """What was noted on the way, such as clients that failed; empty if nothing was."""
    noted = facts.get("warnings") or []
    if not noted:
        return ""
    head = f"**{_count(len(noted), 'warning')}** in `run.json`; the last one:"
    return f"{head}\n\n{_quoted(noted[-1])}"


def setup(config: Config, facts: Mapping[str, Any]) -> str:
    """What was trained, on what, by how many clients."""
    clients, cut = facts.get("clients"), config.get("cut", "?")
    who = "an unknown number of clients" if clients is None else _count(int(clients), "client")
    side, schedule = config.get("image-size", "?"), config.get("schedule", "?")
    blocks = {0: "no block", 1: "the first block"}.get(cut, f"the first {cut} blocks")
    return (
        f"A split `{config.get('model', '?')}` was trained on `{config.get('data', '?')}` "
        f"({side} x {side} pixels) by {who}. Labels, loss and head never leave a client "
        f"(U-shaped split learning); the edge holds the patch embedding and {blocks} "
        f"(cut = {cut}), the trunk on the server the others. Schedule `{schedule}`"
        f"{_explained(SCHEDULES, schedule)}, transport `{config.get('transport', '?')}`, numbers "
        f"on the wire `{config.get('wire-dtype', '?')}`, edge and tail weights "
        f"`{config.get('client-weights', '?')}`."
    )


def privacy(config: Config, attacked: bool) -> str:
    """Permutation, keys and defences; and what this report can say about privacy."""
    parts = [_permutation(config), _keys(config), _defences(config)]
    if not attacked:
        parts.append(
            "No attack has been run against this model, so this report measures no privacy: "
            "permutation hides the order of tokens, not their content."
        )
    return "\n\n".join(part for part in parts if part)


def utility(last: Headline, attributes: pd.DataFrame) -> str:
    """The headline numbers beside the floor, and what they mean."""
    text = (
        f"After round {last.round}, on the {last.split} split ({_count(last.count, 'image')}), "
        f"mean accuracy is **{_percent(last.accuracy)}**; always answering the majority class of "
        f"each attribute gives **{_percent(last.floor)}** (the floor). {_gain(last)}"
    )
    if not math.isnan(last.balanced_accuracy):
        text += (
            f" Balanced accuracy, to which both classes of an attribute count alike, is "
            f"**{_percent(last.balanced_accuracy)}** (50 % is guessing)."
        )
    told = attributes.dropna(subset=["gain"])
    if not told.empty:
        above = int((told["gain"] > 0).sum())
        text += f" {above} of {len(told)} attributes are above their own floor."
    return text


def _quoted(text: object) -> str:
    return f"```text\n{str(text).strip()}\n```"


def _gain(last: Headline) -> str:
    gain = last.accuracy - last.floor
    if math.isnan(gain):
        return "Without both numbers nothing can be said about what the model has learnt."
    noise = 2 * math.sqrt(last.floor * (1 - last.floor) / max(1, last.count))
    points = f"{signed_percent(gain)} points against the floor"
    if gain > noise:
        return f"That is {points}: the model tells more than the class frequencies do."
    if gain >= -noise:
        return (
            f"That is {points}, within what chance does on so few images (about "
            f"{percent(noise)}): the model is not shown to have learnt more than class frequencies."
        )
    return f"That is {points}: the model does worse than not looking at the image at all."


def _permutation(config: Config) -> str:
    kind = config.get("permute", "none")
    if kind == "none":
        return "**No permutation.** Tokens leave the client in their order."
    text = f"**Permutation `{kind}`.** {PERMUTATIONS.get(kind, kind)}."
    if "row" in kind:
        rotation = config.get("rotation", "?")
        cls = "is permuted too" if config.get("permute-cls") else "stays in its place"
        text += f" Rotation `{rotation}`{_explained(ROTATIONS, rotation)}; CLS {cls}."
        if config.get("edge-position") == "learned":
            text += (
                " Tokens carry their position embedding, from which an attacker may predict where "
                "each belongs."
            )
    return text


def _keys(config: Config) -> str:
    if config.get("permute", "none") == "none":
        return ""
    source = config.get("key-source", "?")
    if source == "seed":
        seed = config.get("seed", "?")
        return (
            f"**This run is a simulation: its keys derive from the seed ({seed}) and are "
            "reproducible.** Whoever knows the seed knows every permutation; such keys "
            "protect nothing."
        )
    if source == "random":
        return "Keys were drawn at random by each client and never written."
    if source == "file":
        return "Keys came from files that the data owners hold."
    return f"Keys came from `{source}`."


def _defences(config: Config) -> str:
    declared = str(config.get("defences", "")).strip()
    if not declared:
        return "**No defence** besides."
    steps = [_defence(step.strip()) for step in declared.split(",")]
    point = config.get("defence-point", "?")
    return f"**Defences `{declared}`**, in this order, on the {point}: {', then '.join(steps)}."


def _defence(step: str) -> str:
    name, _, argument = step.partition(":")
    return DEFENCES[name].format(argument) if name in DEFENCES else f"`{step}`"


def _explained(words: Mapping[str, str], key: str) -> str:
    return f" ({words[key]})" if key in words else ""


def _percent(share: float) -> str:
    return "not measured" if math.isnan(share) else f"{percent(share)} %"


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def _where(progress: Mapping[str, Any]) -> str:
    if "round" not in progress:
        return ""
    rounds = f" of {progress['rounds']}" if "rounds" in progress else ""
    return f", round {progress['round']}{rounds}"


def _times(facts: Mapping[str, Any]) -> str:
    started, finished = facts.get("started"), facts.get("finished")
    if not (started and finished):
        return f"Started {started}."
    seconds = (datetime.fromisoformat(finished) - datetime.fromisoformat(started)).total_seconds()
    breaks = f", resumed {len(facts['resumed'])} x" if facts.get("resumed") else ""
    return f"Started {started}, ended {finished} ({duration(seconds)}{breaks})."
