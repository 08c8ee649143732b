# SPDX-License-Identifier: Apache-2.0
"""Threat models and attackers on what clients send."""

from attacks.registry import ATTACKERS, check_attackers

__all__ = ["ATTACKERS", "check_attackers"]
