# SPDX-License-Identifier: Apache-2.0
"""Permutation equivariance of Transformers: keyed permutations and weight conjugation.

Plain torch; nothing here knows of clients, servers or messages. The mathematics is that of
"Permutation Equivariance of Transformers and Its Applications" (Xu et al., CVPR 2024): a stack of
Transformer blocks commutes with any permutation of its tokens (rows), and, once its weights are
conjugated, with a permutation of its features (columns), forward and backward.

A permutation is an index tensor `order` (int64) throughout: entry `i` of the result is entry
`order[i]` of the input. Shape suffixes: B batch, N tokens, D features.

==============  ==============================================================
`order`         permutations as index tensors: inverse, composition, check
`row`           permutations of tokens, one for all samples or one per sample
`column`        permutations of features that keep attention heads together
`keys`          256-bit secrets: derivation, files
`stream`        random words and permutations from a secret
`rotation`      when a client's row key changes
`conjugation`   the weights that go with a column permutation
`rules`         what conjugation does to each parameter, one file per architecture
==============  ==============================================================
"""

from equivariance.column import (
    check_headwise,
    log2_group_size,
    permute_columns,
    sample_column_order,
    unpermute_columns,
)
from equivariance.conjugation import ConjugationError, Inner, conjugate_, conjugate_state
from equivariance.keys import KeyFileError, Secret
from equivariance.order import check_permutation, compose, invert
from equivariance.rotation import ROTATIONS, Rotation, row_orders
from equivariance.row import permute_rows, unpermute_rows, with_prefix
from equivariance.rules import RULES, TIMM_VIT_BLOCK_RULES, Axis, Rule
from equivariance.stream import random_permutations, uniform_words

__all__ = [
    "ROTATIONS",
    "RULES",
    "TIMM_VIT_BLOCK_RULES",
    "Axis",
    "ConjugationError",
    "Inner",
    "KeyFileError",
    "Rotation",
    "Rule",
    "Secret",
    "check_headwise",
    "check_permutation",
    "compose",
    "conjugate_",
    "conjugate_state",
    "invert",
    "log2_group_size",
    "permute_columns",
    "permute_rows",
    "random_permutations",
    "row_orders",
    "sample_column_order",
    "uniform_words",
    "unpermute_columns",
    "unpermute_rows",
    "with_prefix",
]
