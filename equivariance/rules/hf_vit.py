# SPDX-License-Identifier: Apache-2.0
"""Rules for Hugging Face's ViT, DeiT and DINOv2, by the names of transformers 5 and of 4.

DINOv2 adds LayerScale, register tokens and, in its largest size, a gated MLP.
"""

from equivariance.rules.architecture import Architecture
from equivariance.rules.rule import AFFINE, Axis, in_block, outside

__all__ = ["HF_VIT"]

_QUERY = r"(?:attention\.[qkv]_proj|attention\.attention\.(?:query|key|value))"
_PROJECTION = r"attention\.(?:o_proj|output\.dense)"
_MLP_IN = r"(?:mlp\.(?:fc1|weights_in|gate_proj|up_proj)|intermediate\.dense)"
_MLP_OUT = r"(?:mlp\.(?:fc2|weights_out|down_proj)|output\.dense)"
_TOKENS = r"(?:cls_token|distillation_token|mask_token|register_tokens|position_embeddings)"
_PATCH = r"embeddings\.patch_embeddings\.projection"
_HEAD = r"(?:pooler\.dense|classifier|cls_classifier|distillation_classifier)"

HF_VIT = Architecture(
    name="hf-vit",
    blocks=(
        in_block(r"(?:layernorm_before|layernorm_after|norm[12])" + AFFINE, Axis.STREAM),
        in_block(r"layer_scale[12]\.lambda1", Axis.STREAM),
        in_block(_QUERY + r"\.weight", Axis.INNER, Axis.STREAM),
        in_block(_QUERY + r"\.bias", Axis.INNER),
        in_block(_PROJECTION + r"\.weight", Axis.STREAM, Axis.INNER),
        in_block(_PROJECTION + r"\.bias", Axis.STREAM),
        in_block(_MLP_IN + r"\.weight", Axis.KEEP, Axis.STREAM),
        in_block(_MLP_IN + r"\.bias", Axis.KEEP),
        in_block(_MLP_OUT + r"\.weight", Axis.STREAM, Axis.KEEP),
        in_block(_MLP_OUT + r"\.bias", Axis.STREAM),
    ),
    outside=(
        outside(r"embeddings\." + _TOKENS, Axis.KEEP, Axis.KEEP, Axis.STREAM),
        outside(r"embeddings\.mask_token", Axis.KEEP, Axis.STREAM),  # DINOv2's has an axis less
        outside(_PATCH + r"\.weight", Axis.STREAM, Axis.KEEP, Axis.KEEP, Axis.KEEP),
        outside(_PATCH + r"\.bias", Axis.STREAM),
        outside(r"layernorm" + AFFINE, Axis.STREAM),
        outside(_HEAD + r"\.weight", Axis.KEEP, Axis.STREAM),
        outside(_HEAD + r"\.bias", Axis.KEEP),
    ),
    stack=r"(?:.*\.)?(?:encoder\.layer|layers)",
    types=frozenset(
        {
            "transformers.models.vit.modeling_vit.ViTLayer",
            "transformers.models.deit.modeling_deit.DeiTLayer",
            "transformers.models.dinov2.modeling_dinov2.Dinov2Layer",
            "transformers.models.dinov2_with_registers.modeling_dinov2_with_registers"
            ".Dinov2WithRegistersLayer",
        }
    ),
)
