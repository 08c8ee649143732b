# SPDX-License-Identifier: Apache-2.0
"""Rules for the blocks of timm's `VisionTransformer` (Block and ResPostBlock).

They follow the paper's table of conjugated weights, and add what timm's blocks may have besides:
LayerScale, norms of queries and keys, norms before the output projections, a gate on attention,
gated MLPs. Attention with rotary positions has the same names but pairs features of a head: for
it only `inner="none"` would be right, and permuted rows would not.
"""

import re

from equivariance.rules.rule import Axis, Rule

__all__ = ["TIMM_VIT_BLOCK_RULES"]

# A parameter's name starts with its block's index ("blocks.3.", "3.") or, for a lone block, with
# nothing. So the final norm, the head or an attention pool find no rule.
_BLOCK = r"(?:(?:.*\.)?\d+\.)?"
_AFFINE = r"\.(?:weight|bias)"


def _rule(name: str, *axes: Axis) -> Rule:
    return Rule(re.compile(_BLOCK + name), axes)


TIMM_VIT_BLOCK_RULES: tuple[Rule, ...] = (
    _rule(r"norm[12]" + _AFFINE, Axis.STREAM),
    _rule(r"ls[12]\.gamma", Axis.STREAM),
    _rule(r"attn\.qkv\.weight", Axis.QKV, Axis.STREAM),
    _rule(r"attn\.qkv\.bias", Axis.QKV),
    _rule(r"attn\.[qk]_norm" + _AFFINE, Axis.HEAD),
    _rule(r"attn\.norm" + _AFFINE, Axis.INNER),
    _rule(r"attn\.gate\.weight", Axis.INNER, Axis.STREAM),
    _rule(r"attn\.gate\.bias", Axis.INNER),
    _rule(r"attn\.proj\.weight", Axis.STREAM, Axis.INNER),
    _rule(r"attn\.proj\.bias", Axis.STREAM),
    _rule(r"mlp\.fc1(?:_[gx])?\.weight", Axis.KEEP, Axis.STREAM),
    _rule(r"mlp\.fc1(?:_[gx])?\.bias", Axis.KEEP),
    _rule(r"mlp\.norm" + _AFFINE, Axis.KEEP),
    _rule(r"mlp\.fc2\.weight", Axis.STREAM, Axis.KEEP),
    _rule(r"mlp\.fc2\.bias", Axis.STREAM),
)
