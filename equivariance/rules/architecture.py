# SPDX-License-Identifier: Apache-2.0
"""What must be known of an architecture: its rules, where its blocks are, how it is recognised."""

from dataclasses import dataclass
from typing import Literal, get_args

from equivariance.rules.rule import Rule

__all__ = ["SCOPES", "Architecture", "Scope"]

Scope = Literal["blocks", "model"]
SCOPES: tuple[Scope, ...] = get_args(Scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A family of models whose parameters share names and meaning.

    Parameters
    ----------
    name : str
        Its key in the registry.
    blocks : tuple of Rule
        For parameters of blocks, whose names may start anywhere before the block's index.
    outside : tuple of Rule
        For the parameters before and after the blocks, as if the residual stream reached from the
        embeddings to the head.
    stack : str
        Pattern of the name of the list of blocks.
    types : frozenset of str
        Qualified names of the classes of its blocks, so that none must be imported to know them.
    """

    name: str
    blocks: tuple[Rule, ...]
    outside: tuple[Rule, ...]
    stack: str
    types: frozenset[str]

    def rules(self, scope: Scope = "blocks") -> tuple[Rule, ...]:
        """Return the rules for a whole model.

        Parameters
        ----------
        scope : {"blocks", "model"}
            `blocks` is the paper's sandwich: embeddings, positions, final norm and head stay plain,
            and features are permuted just before the first block and back just after the last.
            `model` moves both permutations into the parameters there: the model takes the same
            inputs and gives the same logits as the plain one, with no permutation at run time;
            features that it returns, e.g. `last_hidden_state`, are permuted.

        Raises
        ------
        ValueError
            If the scope is unknown.
        """
        if scope not in SCOPES:
            raise ValueError(f"scope {scope!r} is unknown; allowed are {', '.join(SCOPES)}")
        if scope == "model":
            return self.blocks + self.outside
        return self.blocks + tuple(rule.keeping() for rule in self.outside)
