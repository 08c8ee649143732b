# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the strategies' tests."""

from trouble import troubled

__all__ = ["troubled"]
