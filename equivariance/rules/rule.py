# SPDX-License-Identifier: Apache-2.0
"""A rule: parameters of this name have these axes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

__all__ = ["AFFINE", "Axis", "Rule", "axes_of", "in_block", "outside"]


class Axis(Enum):
    """What the entries along one axis of a parameter belong to.

    Labels on axes, rather than the paper's actions on weights, say the same in fewer words:
    P_C^-1 W P_C is (STREAM, STREAM), W P_C is (KEEP, STREAM), P_C^-1 W is (STREAM, KEEP), b P_C is
    (STREAM); a weight stored (in x out), as GPT-2's, just lists its axes the other way round.
    """

    STREAM = "features of the residual stream: always permuted"
    INNER = "attention features, all heads: permuted if inner is headwise"
    QKV = "three times INNER, fused: query, key and value"
    HEAD = "features of one head, shared by all heads: cannot be permuted if inner is headwise"
    KEEP = "anything else, e.g. hidden features of the MLP: never permuted"


@dataclass(frozen=True, slots=True)
class Rule:
    """Rule for the parameters whose full name matches a pattern.

    Parameters
    ----------
    pattern : re.Pattern
        Matched against the whole name.
    axes : tuple of Axis
        One label for each axis of the parameter.
    """

    pattern: re.Pattern[str]
    axes: tuple[Axis, ...]

    def keeping(self) -> "Rule":
        """Return the rule that leaves the same parameters as they are."""
        return Rule(self.pattern, (Axis.KEEP,) * len(self.axes))


def axes_of(name: str, ndim: int, rules: Sequence[Rule]) -> tuple[Axis, ...] | None:
    """Return what the axes of a parameter are: of the first rule for its name that has `ndim`.

    If none has, of the first for its name, so that who asks can say what does not fit; None if no
    rule is for its name.
    """
    matches = [rule.axes for rule in rules if rule.pattern.fullmatch(name)]
    fitting = [axes for axes in matches if len(axes) == ndim]
    return next(iter(fitting or matches), None)


AFFINE = r"\.(?:weight|bias)"
"""End of the names of a norm's gain and bias."""

# A parameter's name starts with its block's index ("blocks.3.", "3.") or, for a lone block, with
# nothing. So the final norm, the head or an attention pool find no rule of a block.
_BLOCK = r"(?:(?:.*\.)?\d+\.)?"

# What a whole model may be wrapped in. Not anything at all: "attn_pool.norm" is no final norm.
_WRAPPERS = (
    r"(?:(?:_orig_mod|module|model|backbone|encoder|trunk"
    r"|vit|deit|dinov2|dinov2_with_registers|bert|transformer)\.)*"
)


def in_block(name: str, *axes: Axis) -> Rule:
    """Return the rule for a parameter of a block, by the pattern of its name in the block."""
    return Rule(re.compile(_BLOCK + name), axes)


def outside(name: str, *axes: Axis) -> Rule:
    """Return the rule for a parameter before or after the blocks, by the pattern of its name."""
    return Rule(re.compile(_WRAPPERS + name), axes)
