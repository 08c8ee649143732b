# SPDX-License-Identifier: Apache-2.0
"""Permutation equivariance of Transformers: keyed permutations and weight conjugation.

Plain torch; nothing here knows of clients, servers or messages. The mathematics is that of
"Permutation Equivariance of Transformers and Its Applications" (Xu et al., CVPR 2024): a stack of
Transformer blocks commutes with any permutation of its tokens (rows), and, once its weights are
conjugated, with a permutation of its features (columns), forward and backward.

A permutation is an index tensor `order` (int64) throughout: entry `i` of the result is entry
`order[i]` of the input. Shape suffixes: B batch, N tokens, D features.

===============  =============================================================
`permutation`    row and column permutations as values
`order`          permutations as index tensors: inverse, composition, check
`row`            permutations of tokens, one for all samples or one per sample
`column`         permutations of features that keep attention heads together
`keys`           256-bit secrets: derivation, files
`stream`         random words and permutations from a secret
`rotation`       when a client's row key changes
`conjugation`    the weights that go with a column permutation
`checking`       whether a model commutes, and where and why it does not
`rules`          what conjugation does to each parameter, one file per architecture
`locking`        model files that work only with their owner's key, and the attack on them
===============  =============================================================
"""

from equivariance.checking import check_equivariance, first_broken
from equivariance.column import (
    check_headwise,
    log2_group_size,
    permute_columns,
    sample_column_order,
    unpermute_columns,
)
from equivariance.conjugation import (
    ConjugationError,
    Inner,
    conjugate_,
    conjugate_optimizer_,
    conjugate_state,
    conjugate_tensor,
)
from equivariance.keys import KeyFileError, Secret
from equivariance.locking import (
    LockError,
    crack_file,
    load_locked,
    lock_file,
    read_lock,
    rekey_file,
    unlock_file,
    with_key,
)
from equivariance.order import check_permutation, compose, invert
from equivariance.permutation import ColumnPermutation, RowPermutation
from equivariance.rotation import ROTATIONS, Rotation, row_orders
from equivariance.row import permute_rows, unpermute_rows, with_prefix
from equivariance.rules import (
    ARCHITECTURES,
    RULES,
    SCOPES,
    TIMM_VIT_BLOCK_RULES,
    Architecture,
    Axis,
    Rule,
    Scope,
    UnknownArchitectureError,
    architecture_of,
    rules_for,
)
from equivariance.stream import random_permutations, uniform_words

__all__ = [
    "ARCHITECTURES",
    "ROTATIONS",
    "RULES",
    "SCOPES",
    "TIMM_VIT_BLOCK_RULES",
    "Architecture",
    "Axis",
    "ColumnPermutation",
    "ConjugationError",
    "Inner",
    "KeyFileError",
    "LockError",
    "Rotation",
    "RowPermutation",
    "Rule",
    "Scope",
    "Secret",
    "UnknownArchitectureError",
    "architecture_of",
    "check_equivariance",
    "check_headwise",
    "check_permutation",
    "compose",
    "conjugate_",
    "conjugate_optimizer_",
    "conjugate_state",
    "conjugate_tensor",
    "crack_file",
    "first_broken",
    "invert",
    "load_locked",
    "lock_file",
    "log2_group_size",
    "permute_columns",
    "permute_rows",
    "random_permutations",
    "read_lock",
    "rekey_file",
    "row_orders",
    "rules_for",
    "sample_column_order",
    "uniform_words",
    "unlock_file",
    "unpermute_columns",
    "unpermute_rows",
    "with_key",
    "with_prefix",
]
