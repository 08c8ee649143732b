# SPDX-License-Identifier: Apache-2.0
"""What conjugation does to each parameter of an architecture.

To add an architecture: a file here that defines its tuple of rules, and a line in `RULES`.
"""

from equivariance.rules.rule import Axis, Rule
from equivariance.rules.timm_vit import TIMM_VIT_BLOCK_RULES

__all__ = ["RULES", "TIMM_VIT_BLOCK_RULES", "Axis", "Rule"]

RULES: dict[str, tuple[Rule, ...]] = {
    "timm-vit": TIMM_VIT_BLOCK_RULES,
}
