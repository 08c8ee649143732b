# SPDX-License-Identifier: Apache-2.0
"""What a computation costs: floating point operations, bytes alive at once, seconds.

Operations and bytes are counted from shapes, so on the device `meta`, which computes nothing, they
are those of a model of any size.
"""

import time
import weakref
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten
from torch.utils.flop_counter import FlopCounterMode

__all__ = ["count_flops", "peak_bytes", "seconds"]


def count_flops(work: Callable[[], object]) -> int:
    """Count floating point operations by `torch.utils.flop_counter`, backward passes included.

    It counts matrix products and attention, two operations for a multiplication with addition;
    what works entry by entry, norms among them, and what only moves entries counts nothing.
    """
    counter = FlopCounterMode(display=False)
    with counter:
        work()
    return int(counter.get_total_flops())


def peak_bytes(work: Callable[[], object]) -> int:
    """Return the most bytes alive at once among the tensors that `work` makes, gradients included.

    What exists before, as parameters, does not count, nor what an operation uses inside itself.
    """
    tracker = _LiveBytes()
    with tracker:
        work()
    return tracker.peak


def seconds(work: Callable[[], object], *, repeat: int, device: str = "cpu") -> float:
    """Return the median duration of `work` over `repeat` runs, after one that warms up."""
    taken = []
    for _ in range(repeat + 1):
        _wait(device)
        began = time.perf_counter()
        work()
        _wait(device)
        taken.append(time.perf_counter() - began)
    return median(taken[1:])


class _LiveBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Follows the storages that operations return until they are freed."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.live, self.peak = 0, 0
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        before, _ = tree_flatten((args, kwargs))
        given = {x.untyped_storage()._cdata for x in before if isinstance(x, Tensor)}
        result = func(*args, **(kwargs or {}))
        for tensor in tree_flatten(result)[0]:
            if isinstance(tensor, Tensor):
                storage = tensor.untyped_storage()
                if storage._cdata not in given and storage not in self._known:
                    self._follow(storage)
        self.peak = max(self.peak, self.live)
        return result

    def _follow(self, storage: torch.UntypedStorage) -> None:
        size = storage.nbytes()
        self._known.add(storage)
        self.live += size
        weakref.finalize(storage, self._freed, size)

    def _freed(self, size: int) -> None:
        self.live -= size


def _wait(device: str) -> None:
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize()
