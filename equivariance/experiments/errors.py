# SPDX-License-Identifier: Apache-2.0
"""The one error of this package."""

__all__ = ["ExperimentError"]


class ExperimentError(ValueError):
    """An experiment cannot be run as asked; nothing has been computed.

    The message names each option at fault, its value and what is allowed.
    """
