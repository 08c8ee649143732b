# SPDX-License-Identifier: Apache-2.0
"""Names of trials: readable, good for a folder, and the same from one start to the next."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence

__all__ = ["trial_name", "trial_names"]

LONGEST = 100
"""Characters; log files, drafts and Flower's folders append to it, and 255 is the usual limit."""

DIGEST = 8


def trial_names(trials: Sequence[Mapping[str, object]]) -> list[str]:
    """A name for each of different trials.

    It is made from the trial's own values alone, so that a sweep may grow without renaming what
    is done. Where two trials would share it (``a+b`` and ``a-b``), both get a digest too.
    """
    names = [trial_name(values) for values in trials]
    counts = Counter(names)
    return [
        name if counts[name] == 1 else trial_name(values, digest=True)
        for name, values in zip(names, trials, strict=True)
    ]


def trial_name(values: Mapping[str, object], *, digest: bool = False) -> str:
    """Name of the trial with these values: ``defences-gn-0.5_permute-row_seed-0``.

    What a folder's name cannot hold becomes a ``-``. A name that is too long is cut, and ends with
    a digest of the values.
    """
    texts = {key: _text(value) for key, value in values.items()}
    name = "_".join(f"{_safe(key)}-{_safe(text) or 'none'}" for key, text in texts.items())
    if len(name) <= LONGEST and not digest:
        return name
    told = hashlib.sha256(json.dumps(texts).encode("utf-8")).hexdigest()[:DIGEST]
    return f"{name[: LONGEST - DIGEST - 1]}-{told}"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _safe(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-")
