# SPDX-License-Identifier: Apache-2.0
"""Settings for all tests."""

import os

import pytest
import torch

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    """Tiny tensors: a second thread only waits for the first."""
    torch.set_num_threads(1)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests first, so that the short ones fill the gaps when workers share the work."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
