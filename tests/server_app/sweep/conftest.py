# SPDX-License-Identifier: Apache-2.0
"""Plans of small sweeps."""

from pathlib import Path

import pytest

from server_app.sweep import Trial, parse_sweep, plan_trials
from tests.server_app.sweep.fake_trials import MakeTrials


@pytest.fixture
def make_trials(tmp_path: Path) -> MakeTrials:
    """Plans the trials of a sweep in ``tmp_path/tiny``: two permutations, two attackers."""

    def make(**fields: object) -> list[Trial]:
        document: dict[str, object] = {
            "name": "tiny",
            "set": {"attack": "decoder,position"},
            "grid": {"permute": ["none", "row"]},
        }
        return plan_trials(parse_sweep(document | fields, "test"), tmp_path / "tiny", "test")

    return make
