# SPDX-License-Identifier: Apache-2.0
"""Freed memory stays with a process that asked to keep it, where the allocator can do that."""

import ctypes
import platform
import subprocess
import sys

import pytest

from server_app import heap

FAULTS_OF_TEN_STEPS = """
import resource, sys
import torch
from server_app.heap import keep_freed_memory

def step():
    for tensor in [torch.ones(16 << 20) for _ in range(2)]:  # above glibc's largest mmap threshold
        tensor.add_(1)

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

if sys.argv[1] == "keep":
    assert keep_freed_memory()
for _ in range(3):
    step()
before = faults()
for _ in range(10):
    step()
print(faults() - before)
"""


def faults(how: str) -> int:
    command = [sys.executable, "-c", FAULTS_OF_TEN_STEPS, how]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_freed_memory_is_not_taken_from_the_kernel_again() -> None:
    assert faults("keep") * 10 < faults("as it is")


def test_another_allocator_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert heap.keep_freed_memory() is False
