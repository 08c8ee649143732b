# SPDX-License-Identifier: Apache-2.0
"""A long run needs no more memory than a short one."""

import resource
from collections import deque
from pathlib import Path

import pytest
from federation import federate, tiny_config

WARM, STEPS = 40, 200
BOUND = 48 * 2**20
STATUS = Path("/proc/self/statm")


def resident() -> int:
    """Memory of this process now, in bytes (its peak may be that of an earlier test)."""
    return int(STATUS.read_text().split()[1]) * resource.getpagesize()


@pytest.mark.slow
@pytest.mark.skipif(not STATUS.exists(), reason="resident memory is read from Linux's /proc")
def test_memory_does_not_grow_with_steps(tmp_path: Path) -> None:
    config = tiny_config(
        tmp_path, schedule="parallel", rounds=2, steps_per_round=STEPS, batch_size=32, dim=64,
        permute="row", image_size=32, data="synthetic:120",
    )  # fmt: skip
    run = federate(config, 1)
    run.grid.traffic = deque(maxlen=1)  # type: ignore[assignment]
    seen: dict[int, int] = {}

    def step(round: int, step: int, phase: str) -> None:
        if phase == "train":
            seen[step] = resident()

    run.witness.step = step  # type: ignore[method-assign]
    run.strategy.start(run.grid, num_rounds=1)
    # Smashed data and their gradient alone take 1 MiB a step: kept, they would be 160 MiB.
    assert seen[STEPS] - seen[WARM] < BOUND
