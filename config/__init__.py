# SPDX-License-Identifier: Apache-2.0
"""The typed configuration of a run, read by both apps, and the presets."""

from config.fields import ATTACK_KEYS, RESUME_KEYS, RunConfig, keys
from config.parse import Rule, parse_run_config
from config.presets import load_preset, preset_names
from config.problems import ConfigError, Problem

__all__ = [
    "ATTACK_KEYS",
    "RESUME_KEYS",
    "ConfigError",
    "Problem",
    "Rule",
    "RunConfig",
    "keys",
    "load_preset",
    "parse_run_config",
    "preset_names",
]
