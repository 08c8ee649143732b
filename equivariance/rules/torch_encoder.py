# SPDX-License-Identifier: Apache-2.0
"""Rules for PyTorch's `nn.TransformerEncoderLayer` and `nn.TransformerEncoder`, pre- and post-norm.

A `nn.TransformerEncoder` has no embedding and no head: only its final norm is outside the blocks.
"""

from equivariance.rules.architecture import Architecture
from equivariance.rules.rule import AFFINE, Axis, in_block, outside

__all__ = ["TORCH_ENCODER"]

TORCH_ENCODER = Architecture(
    name="torch-encoder",
    blocks=(
        in_block(r"norm[12]" + AFFINE, Axis.STREAM),
        in_block(r"self_attn\.in_proj_weight", Axis.QKV, Axis.STREAM),
        in_block(r"self_attn\.in_proj_bias", Axis.QKV),
        in_block(r"self_attn\.out_proj\.weight", Axis.STREAM, Axis.INNER),
        in_block(r"self_attn\.out_proj\.bias", Axis.STREAM),
        in_block(r"linear1\.weight", Axis.KEEP, Axis.STREAM),
        in_block(r"linear1\.bias", Axis.KEEP),
        in_block(r"linear2\.weight", Axis.STREAM, Axis.KEEP),
        in_block(r"linear2\.bias", Axis.STREAM),
    ),
    outside=(outside(r"norm" + AFFINE, Axis.STREAM),),
    stack=r"(?:.*\.)?layers",
    types=frozenset({"torch.nn.modules.transformer.TransformerEncoderLayer"}),
)
