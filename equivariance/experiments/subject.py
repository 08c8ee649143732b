# SPDX-License-Identifier: Apache-2.0
"""A model under test, with its stack of blocks, and its conjugated twin."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from equivariance.column import sample_column_order
from equivariance.conjugation import conjugate_
from equivariance.keys import Secret
from equivariance.locking import Stack
from equivariance.locking.architectures import block_modules, block_names
from equivariance.order import invert

__all__ = ["Subject"]


@dataclass(frozen=True)
class Subject:
    """A model and what must be known of its blocks.

    Parameters
    ----------
    model : nn.Module
        Takes keyword inputs.
    stack : Stack
        Its blocks' architecture, width and heads.
    """

    model: nn.Module
    stack: Stack

    @property
    def blocks(self) -> list[nn.Module]:
        """The blocks in the order in which they run."""
        return list(block_modules(self.model, self.stack.architecture).values())

    def column_order(self, secret: Secret) -> Tensor:
        """Draw an admissible column permutation [D] on the model's device."""
        heads = self.stack.heads if self.stack.inner == "headwise" else 1
        order = sample_column_order(secret, dim=self.stack.dim, heads=heads)
        return order.to(next(self.model.parameters()).device)

    def copy(self) -> "Subject":
        """Return a twin that shares nothing."""
        return Subject(copy.deepcopy(self.model), self.stack)

    def conjugated(self, order: Tensor) -> "Subject":
        """Return a twin whose blocks are conjugated by a column permutation."""
        twin = self.copy()
        stack = self.stack
        conjugate_(
            nn.ModuleList(twin.blocks),
            order,
            heads=stack.heads,
            inner=stack.inner,
            rules=stack.rules,
        )
        return twin

    def unconjugate(self, named: Mapping[str, Tensor], order: Tensor | None) -> dict[str, Tensor]:
        """Return parameters or gradients as the plain model has them.

        Parameters
        ----------
        named : mapping of str to Tensor
            By the model's parameter names.
        order : Tensor, optional
            The column permutation by which the blocks are conjugated; None: they are not.
        """
        if order is None:
            return dict(named)
        inside = block_names(named, self.stack.architecture)
        blocks = {short: named[name] for name, short in inside.items()}
        plain = self.stack.conjugate(blocks, invert(order))
        return dict(named) | {name: plain[short] for name, short in inside.items()}

    def weights(self, order: Tensor | None = None) -> dict[str, Tensor]:
        """Return the parameters, un-conjugated by `order` if it is given."""
        named = {name: parameter.detach() for name, parameter in self.model.named_parameters()}
        return self.unconjugate(named, order)
