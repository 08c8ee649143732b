# SPDX-License-Identifier: Apache-2.0
"""Whether a model rotates queries and keys.

Rotary positions pair the features inside a head, so a permutation there breaks the pairs: such
models are conjugated with `inner="none"` only.
"""

import inspect
import re
from collections.abc import Iterable

from torch import nn

__all__ = ["rotary_module", "rotary_name"]

# Names that only timm's `Eva` and its kin use, most of which rotate queries and keys.
_NAMES = re.compile(r"(?:.*\.)?(?:rope(?:\..*)?|attn\.[qkv]_(?:bias|proj\..*)|gamma_[12])")
_TYPES = re.compile(r"rotary|rope", re.IGNORECASE)


def rotary_module(module: nn.Module) -> str | None:
    """Return the part of a module that rotates queries and keys, as "name (type)", or None.

    A block that takes rotary positions from outside counts, unless what holds it is in `module`
    and says that there are none, as timm's `Eva` does by `rope = None`.
    """
    parts = dict(module.named_modules())
    without = any(getattr(part, "rope", "") is None for part in parts.values())
    for name, part in parts.items():
        takes = "rope" in inspect.signature(part.forward).parameters and not without
        if takes or _TYPES.search(type(part).__name__):
            return f"{name or 'the model'} ({type(part).__name__})"
    return None


def rotary_name(names: Iterable[str]) -> str | None:
    """Return a name that models with rotary positions have, or None; not all can be told by it."""
    return next((name for name in names if _NAMES.fullmatch(name)), None)
