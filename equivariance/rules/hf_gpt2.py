# SPDX-License-Identifier: Apache-2.0
"""Rules for Hugging Face's GPT-2, whose `Conv1D` stores weights (in x out)."""

from equivariance.rules.architecture import Architecture
from equivariance.rules.rule import AFFINE, Axis, in_block, outside

__all__ = ["HF_GPT2"]

HF_GPT2 = Architecture(
    name="hf-gpt2",
    blocks=(
        in_block(r"ln_[12]" + AFFINE, Axis.STREAM),
        in_block(r"attn\.c_attn\.weight", Axis.STREAM, Axis.QKV),
        in_block(r"attn\.c_attn\.bias", Axis.QKV),
        in_block(r"attn\.c_proj\.weight", Axis.INNER, Axis.STREAM),
        in_block(r"attn\.c_proj\.bias", Axis.STREAM),
        in_block(r"mlp\.c_fc\.weight", Axis.STREAM, Axis.KEEP),
        in_block(r"mlp\.c_fc\.bias", Axis.KEEP),
        in_block(r"mlp\.c_proj\.weight", Axis.KEEP, Axis.STREAM),
        in_block(r"mlp\.c_proj\.bias", Axis.STREAM),
        # The causal mask, which older files carry along.
        in_block(r"attn\.bias", Axis.KEEP, Axis.KEEP, Axis.KEEP, Axis.KEEP),
        in_block(r"attn\.masked_bias"),
    ),
    outside=(
        outside(r"w[tp]e\.weight", Axis.KEEP, Axis.STREAM),
        outside(r"ln_f" + AFFINE, Axis.STREAM),
        outside(r"(?:lm_head|score|classifier|qa_outputs)\.weight", Axis.KEEP, Axis.STREAM),
        outside(r"(?:classifier|qa_outputs)\.bias", Axis.KEEP),
    ),
    stack=r"(?:.*\.)?h",
    types=frozenset({"transformers.models.gpt2.modeling_gpt2.GPT2Block"}),
)
