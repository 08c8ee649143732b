# SPDX-License-Identifier: Apache-2.0
"""Several runs side by side: settings, utility, cost."""

from collections.abc import Sequence
from dataclasses import asdict

import pandas as pd

from reports.cost import bytes_per_image, images_per_second
from reports.labels import labels
from reports.run_folder import RunFolder
from reports.settings import differing
from reports.utility import headline

KEY_SETTINGS = (
    "data", "model", "cut", "permute", "rotation", "defences", "schedule", "transport",
)  # fmt: skip
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
