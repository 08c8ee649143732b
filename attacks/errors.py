# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with an attack before it starts."""


class AttackError(ValueError):
    """A run that cannot be attacked so; the text names the field and what is allowed."""
