# SPDX-License-Identifier: Apache-2.0
"""Model locking: a column key decides who can use a model, and the attack on it.

Paper, authorization. See `docs/model-locking.md` for the file format and for what it protects: a
model whose plain weights nobody else has, and nothing else.

================  ==========================================================
`architectures`   where the blocks are, in a file and in a module
`tensor_file`     safetensors files, streamed, byte for byte
`surroundings`    what a file's metadata and config tell: heads, rotary positions
`record`          what a locked file says about itself
`lock`            lock, unlock, rekey a file
`keyed`           run or fine-tune a locked model with its key
`features`        parameters seen from the columns
`matching`        from scores to an admissible permutation
`crack`           the attack
`crack_file`      the attack on files
`noise`           the attack with a reference that is only similar
================  ==========================================================
"""

from equivariance.locking.architectures import Stack
from equivariance.locking.crack import Crack, crack, share_recovered
from equivariance.locking.crack_file import crack_file
from equivariance.locking.errors import LockError
from equivariance.locking.keyed import (
    KeyInUse,
    load_locked,
    lock_metadata,
    with_key,
    with_order,
)
from equivariance.locking.lock import lock_file, read_lock, rekey_file, unlock_file
from equivariance.locking.noise import noisy_copy, recovery_by_noise
from equivariance.locking.record import Lock, column_order

__all__ = [
    "Crack",
    "KeyInUse",
    "Lock",
    "LockError",
    "Stack",
    "column_order",
    "crack",
    "crack_file",
    "load_locked",
    "lock_file",
    "lock_metadata",
    "noisy_copy",
    "read_lock",
    "recovery_by_noise",
    "rekey_file",
    "share_recovered",
    "unlock_file",
    "with_key",
    "with_order",
]
