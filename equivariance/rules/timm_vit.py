# SPDX-License-Identifier: Apache-2.0
"""Rules for timm's `VisionTransformer` and `Eva`: their blocks (Block, ResPostBlock, EvaBlock) and
what is before and after.

They follow the paper's table of conjugated weights, and add what timm's models may have besides:
LayerScale, norms of queries and keys, norms before the output projections, a gate on attention,
gated MLPs, separate query, key and value, register tokens, attention pooling. Attention with rotary
positions has the same names but pairs features of a head: for it only `inner="none"` is right, and
permuted rows are not.
"""

from equivariance.rules.architecture import Architecture
from equivariance.rules.rule import AFFINE, Axis, Rule, in_block, outside

__all__ = ["TIMM_VIT", "TIMM_VIT_BLOCK_RULES"]

_POOL = r"attn_pool\."

TIMM_VIT_BLOCK_RULES: tuple[Rule, ...] = (
    in_block(r"norm[12]" + AFFINE, Axis.STREAM),
    in_block(r"(?:ls[12]\.gamma|gamma_[12])", Axis.STREAM),
    in_block(r"attn\.qkv\.weight", Axis.QKV, Axis.STREAM),
    in_block(r"attn\.qkv\.bias", Axis.QKV),
    in_block(r"attn\.[qkv]_proj\.weight", Axis.INNER, Axis.STREAM),
    in_block(r"attn\.(?:[qkv]_proj\.|[qkv]_)bias", Axis.INNER),
    in_block(r"attn\.[qk]_norm" + AFFINE, Axis.HEAD),
    in_block(r"attn\.norm" + AFFINE, Axis.INNER),
    in_block(r"attn\.gate\.weight", Axis.INNER, Axis.STREAM),
    in_block(r"attn\.gate\.bias", Axis.INNER),
    in_block(r"attn\.proj\.weight", Axis.STREAM, Axis.INNER),
    in_block(r"attn\.proj\.bias", Axis.STREAM),
    in_block(r"mlp\.fc1(?:_[gx])?\.weight", Axis.KEEP, Axis.STREAM),
    in_block(r"mlp\.fc1(?:_[gx])?\.bias", Axis.KEEP),
    in_block(r"mlp\.norm" + AFFINE, Axis.KEEP),
    in_block(r"mlp\.fc2\.weight", Axis.STREAM, Axis.KEEP),
    in_block(r"mlp\.fc2\.bias", Axis.STREAM),
)

TIMM_VIT = Architecture(
    name="timm-vit",
    blocks=TIMM_VIT_BLOCK_RULES,
    outside=(
        outside(r"(?:cls_token|dist_token|reg_token|pos_embed)", Axis.KEEP, Axis.KEEP, Axis.STREAM),
        outside(r"patch_embed\.proj\.weight", Axis.STREAM, Axis.KEEP, Axis.KEEP, Axis.KEEP),
        outside(r"patch_embed\.proj\.bias", Axis.STREAM),
        outside(r"(?:patch_embed\.norm|norm_pre|norm|fc_norm)" + AFFINE, Axis.STREAM),
        outside(r"head(?:_dist)?\.weight", Axis.KEEP, Axis.STREAM),
        outside(r"head(?:_dist)?\.bias", Axis.KEEP),
        outside(r"rope\.(?:bands|periods)", Axis.KEEP),
        outside(r"rope\.pos_embed", Axis.KEEP, Axis.KEEP),
        # The attention pool (SigLIP) reads the stream and gives a vector permuted like it.
        outside(_POOL + r"latent", Axis.KEEP, Axis.KEEP, Axis.KEEP),
        outside(_POOL + r"pos_embed", Axis.KEEP, Axis.STREAM),
        outside(_POOL + r"q\.weight", Axis.KEEP, Axis.KEEP),
        outside(_POOL + r"kv\.weight", Axis.KEEP, Axis.STREAM),
        outside(_POOL + r"(?:q|kv)\.bias", Axis.KEEP),
        outside(_POOL + r"[qk]_norm" + AFFINE, Axis.KEEP),
        outside(_POOL + r"(?:proj|mlp\.fc2)\.weight", Axis.STREAM, Axis.KEEP),
        outside(_POOL + r"(?:proj|mlp\.fc2)\.bias", Axis.STREAM),
        outside(_POOL + r"norm" + AFFINE, Axis.STREAM),
        outside(_POOL + r"mlp\.fc1\.weight", Axis.KEEP, Axis.STREAM),
        outside(_POOL + r"mlp\.fc1\.bias", Axis.KEEP),
    ),
    stack=r"(?:.*\.)?blocks",
    types=frozenset(
        {
            "timm.models.vision_transformer.Block",
            "timm.models.vision_transformer.ResPostBlock",
            "timm.models.eva.EvaBlock",
            "timm.models.eva.EvaBlockPostNorm",
        }
    ),
)
