# SPDX-License-Identifier: Apache-2.0
"""What conjugation does to each parameter of an architecture.

To add an architecture: a file here that defines it, and its name in `registry`.
"""

from equivariance.rules.architecture import SCOPES, Architecture, Scope
from equivariance.rules.detect import UnknownArchitectureError, architecture_of, rules_for
from equivariance.rules.registry import ARCHITECTURES, RULES
from equivariance.rules.rule import Axis, Rule, axes_of
from equivariance.rules.timm_vit import TIMM_VIT_BLOCK_RULES

__all__ = [
    "ARCHITECTURES",
    "RULES",
    "SCOPES",
    "TIMM_VIT_BLOCK_RULES",
    "Architecture",
    "Axis",
    "Rule",
    "Scope",
    "UnknownArchitectureError",
    "architecture_of",
    "axes_of",
    "rules_for",
]
