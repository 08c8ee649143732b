# SPDX-License-Identifier: Apache-2.0
"""Where the blocks are: in a file's names and in a module.

Only blocks are conjugated. What comes before them (embeddings, positions) and after (final norm,
head) keeps plain features. Architectures are those of `equivariance.rules`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

import equivariance.stack
from equivariance.column import Inner
from equivariance.conjugation import ConjugationError, conjugate_state
from equivariance.locking.errors import LockError
from equivariance.rotary import rotary_name
from equivariance.rules import (
    ARCHITECTURES,
    RULES,
    Architecture,
    Rule,
    UnknownArchitectureError,
    architecture_of,
)

__all__ = [
    "Stack",
    "block_modules",
    "block_names",
    "check_not_rotary",
    "detect_architecture",
    "stream_features",
]


@dataclass(frozen=True, kw_only=True)
class Stack:
    """What must be known of a stack of blocks to conjugate it.

    Parameters
    ----------
    architecture : str
        A key of `equivariance.RULES`.
    dim, heads : int
        Features of the residual stream; attention heads.
    inner : {"headwise", "none"}
        As for `conjugate_state`.
    """

    architecture: str
    dim: int
    heads: int
    inner: Inner

    @property
    def rules(self) -> Sequence[Rule]:
        """What conjugation does to each parameter."""
        return RULES[self.architecture]

    def conjugate(self, state: Mapping[str, Tensor], order: Tensor) -> dict[str, Tensor]:
        """Conjugate parameters of blocks; parameters and errors of `conjugate_state`."""
        return conjugate_state(state, order, heads=self.heads, inner=self.inner, rules=self.rules)

    def check_shapes(self, shapes: Mapping[str, tuple[int, ...]], order: Tensor) -> None:
        """Check that parameters of these names and shapes can be conjugated; costs no data.

        Raises
        ------
        LockError
            With all parameters that cannot.
        """
        shadow = {name: torch.empty(shape, device="meta") for name, shape in shapes.items()}
        try:
            self.conjugate(shadow, order)
        except ConjugationError as error:
            raise LockError(f"architecture {self.architecture}: {error}") from error


def block_names(names: Iterable[str], architecture: str) -> dict[str, str]:
    """Return the names of parameters in blocks, each with its name from the block's index on.

    Raises
    ------
    LockError
        If the architecture is unknown, there is no block, or there are several stacks of them.
    """
    pattern = re.compile(rf"(?P<stack>{_known(architecture).stack})\.(?P<inside>\d+\..+)")
    matches = {name: match for name in names if (match := pattern.fullmatch(name))}
    stacks = sorted({match["stack"] for match in matches.values()})
    if len(stacks) != 1:
        found = ", ".join(stacks) or "none"
        raise LockError(
            f"architecture {architecture}: one stack of blocks is wanted; found are: {found}"
        )
    return {name: match["inside"] for name, match in matches.items()}


def detect_architecture(names: Iterable[str]) -> str:
    """Return the architecture whose rules cover all parameters, those outside the blocks as well.

    Raises
    ------
    LockError
        If there is none; with the parameters that have no rule in the nearest one.
    """
    try:
        return architecture_of(list(names)).name
    except UnknownArchitectureError as error:
        raise LockError(f"{error}") from error


def stream_features(shapes: Mapping[str, tuple[int, ...]], architecture: str) -> int:
    """Return the width of the residual stream, from names and shapes of blocks' parameters.

    Raises
    ------
    LockError
        If the architecture is unknown or no parameter tells.
    """
    try:
        return equivariance.stack.stream_features(shapes, RULES[architecture])
    except ValueError as error:
        raise LockError(f"architecture {architecture}: {error}") from error


def check_not_rotary(names: Iterable[str], inner: Inner) -> None:
    """Refuse `headwise` for models that rotate queries and keys, as far as names tell.

    Rotary positions pair features inside a head, and a permutation there breaks the pairs.

    Raises
    ------
    LockError
        If a name of a parameter or module is one that such models have.
    """
    found = rotary_name(names)
    if inner == "headwise" and found is not None:
        raise LockError(
            f"{found}: such models have rotary positions, which pair the features inside a head: "
            f"inner headwise is wrong for them, use inner none"
        )


def block_modules(model: nn.Module, architecture: str) -> dict[str, nn.Module]:
    """Return the blocks of a model by name, in their order.

    Raises
    ------
    LockError
        If the architecture is unknown, or the model has not exactly one stack of blocks.
    """
    try:
        return equivariance.stack.block_modules(model, _known(architecture))
    except ValueError as error:
        raise LockError(f"{error}") from error


def _known(architecture: str) -> Architecture:
    if architecture not in ARCHITECTURES:
        raise LockError(
            f"architecture {architecture!r} is unknown; allowed are {', '.join(ARCHITECTURES)}"
        )
    return ARCHITECTURES[architecture]
