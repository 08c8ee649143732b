# SPDX-License-Identifier: Apache-2.0
"""Defences: what a client does to its images or tokens before it permutes and sends them."""

from clients.defences.base import Defence
from clients.defences.pipeline import (
    DEFENCES,
    DefencePipeline,
    build_pipeline,
    check_defences,
    parse_defences,
)

__all__ = [
    "DEFENCES",
    "Defence",
    "DefencePipeline",
    "build_pipeline",
    "check_defences",
    "parse_defences",
]
