# SPDX-License-Identifier: Apache-2.0
"""What runs are called in a table of several."""

from collections import Counter
from collections.abc import Sequence

from reports.run_folder import RunFolder


def labels(runs: Sequence[RunFolder]) -> list[str]:
    """The runs' names; with its folder in front where two runs have the same name."""
    count = Counter(run.name for run in runs)
    return [run.name if count[run.name] == 1 else str(run.path) for run in runs]
