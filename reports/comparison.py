# SPDX-License-Identifier: Apache-2.0
"""Several runs side by side: settings, utility, cost, attacks."""

from collections.abc import Sequence
from dataclasses import asdict

import pandas as pd

from reports.cost import bytes_per_image, images_per_second
from reports.labels import labels
from reports.run_folder import RunFolder
from reports.schemas import ATTACKS
from reports.utility import headline

KEY_SETTINGS = (
    "data", "model", "cut", "permute", "rotation", "defences", "schedule", "transport",
)  # fmt: skip
PLACES = ("runs-dir", "run-name", "state-dir", "cache-dir", "key-dir", "resume")
RESULTS = (
    "clients", "status", "split", "round", "accuracy", "balanced_accuracy", "floor", "gain", "loss",
    "images_per_second", "bytes_per_image",
)  # fmt: skip


def compare(runs: Sequence[RunFolder]) -> pd.DataFrame:
    """One row a run: settings, then results.

    Returns
    -------
    DataFrame
        ``run``; the key settings (data, model, cut, permute, rotation, defences, schedule,
        transport); every further key in which the runs differ, save names and places; then
        ``clients``, ``status``, ``split`` and ``round`` of the last evaluation, ``accuracy``,
        ``balanced_accuracy``, ``floor``, ``gain`` (0 .. 1, means over attributes), ``loss``,
        ``images_per_second`` and ``bytes_per_image`` in training. NaN, NA or None where
        not measured.
    """
    configs = [run.config() for run in runs]
    settings = [*KEY_SETTINGS, *(k for k in differing(runs) if k not in KEY_SETTINGS)]
    rows = [
        {"run": label, **{key: config.get(key) for key in settings}, **_results(run)}
        for run, label, config in zip(runs, labels(runs), configs, strict=True)
    ]
    table = pd.DataFrame(rows, columns=["run", *settings, *RESULTS])
    return table.astype({"clients": "Int64", "round": "Int64"})  # whole numbers, or NA


def differing(runs: Sequence[RunFolder]) -> list[str]:
    """Keys in which the runs differ, in the order of their configs; names and places left out."""
    configs = [run.config() for run in runs]
    keys = dict.fromkeys(key for config in configs for key in config if key not in PLACES)
    return [key for key in keys if any(c.get(key) != configs[0].get(key) for c in configs)]


def attack_table(runs: Sequence[RunFolder]) -> pd.DataFrame:
    """All attack results, long: ``run`` and the columns of :data:`reports.schemas.ATTACKS`."""
    frames = [
        run.attacks().assign(run=label) for run, label in zip(runs, labels(runs), strict=True)
    ]
    frames = [frame for frame in frames if not frame.empty]
    columns = ["run", *ATTACKS]
    return (
        pd.concat(frames, ignore_index=True)[columns] if frames else pd.DataFrame(columns=columns)
    )


def _results(run: RunFolder) -> dict[str, object]:
    facts, last = run.facts(), headline(run)
    measured = asdict(last) if last else {}
    return {
        "clients": facts.get("clients"),
        "status": facts.get("status"),
        **measured,
        "gain": last.accuracy - last.floor if last else None,
        "images_per_second": images_per_second(run),
        "bytes_per_image": bytes_per_image(run),
    }
