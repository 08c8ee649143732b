# SPDX-License-Identifier: Apache-2.0
"""The architectures that conjugation knows."""

from equivariance.rules.architecture import Architecture
from equivariance.rules.hf_bert import HF_BERT
from equivariance.rules.hf_gpt2 import HF_GPT2
from equivariance.rules.hf_vit import HF_VIT
from equivariance.rules.rule import Rule
from equivariance.rules.timm_vit import TIMM_VIT
from equivariance.rules.torch_encoder import TORCH_ENCODER

__all__ = ["ARCHITECTURES", "RULES"]

ARCHITECTURES: dict[str, Architecture] = {
    architecture.name: architecture
    for architecture in (TIMM_VIT, HF_VIT, HF_BERT, HF_GPT2, TORCH_ENCODER)
}

RULES: dict[str, tuple[Rule, ...]] = {
    name: architecture.blocks for name, architecture in ARCHITECTURES.items()
}
"""The rules of each architecture's blocks, nothing else."""
