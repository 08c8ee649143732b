# SPDX-License-Identifier: Apache-2.0
"""How many attention heads a model file has: its parameters do not tell, its surroundings may."""

import json
from typing import Any

import torch

from equivariance.locking.errors import LockError
from equivariance.locking.tensor_file import TensorFile

__all__ = ["find_heads"]

_NUMBERS = ("num_attention_heads", "n_head", "num_heads", "nhead")
_TIMM_NAMES = ("timm", "architecture")


def find_heads(file: TensorFile, dim: int) -> int:
    """Find the number of attention heads of a model file.

    Looks in the file's metadata, then in a `config.json` beside it: for a number under
    `num_attention_heads`, `n_head`, `num_heads` or `nhead` (Hugging Face), then for the name of a
    timm model under `timm` or `architecture`. A common width of heads is not assumed: a wrong
    number would give a model that is wrong with its key, too.

    Parameters
    ----------
    file : TensorFile
        The model.
    dim : int
        Features of its residual stream.

    Raises
    ------
    LockError
        If nothing tells, or what tells does not divide `dim`.
    """
    for where, values in (("metadata", file.metadata), ("config.json", _config(file))):
        for name in _NUMBERS:
            if name in values:
                return _checked(values[name], dim, f"{name} of its {where}")
        for name in _TIMM_NAMES:
            heads = _timm_heads(values.get(name))
            if heads:
                return _checked(heads, dim, f"heads of {name} of its {where}")
    raise LockError("nothing tells the number of attention heads: give --heads")


def _config(file: TensorFile) -> dict[str, Any]:
    try:
        config = json.loads((file.path.parent / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return config if isinstance(config, dict) else {}


def _timm_heads(name: object) -> int | None:
    import timm  # takes long to import, and is needed here alone

    if not isinstance(name, str) or not timm.is_model(name):
        return None
    with torch.device("meta"):
        model = timm.create_model(name)
    heads = {module.num_heads for module in model.modules() if hasattr(module, "num_heads")}
    return heads.pop() if len(heads) == 1 else None


def _checked(value: object, dim: int, source: str) -> int:
    try:
        heads = int(str(value))
    except ValueError:
        heads = 0
    if heads < 1 or dim % heads:
        raise LockError(f"{source} is {value}: must divide the {dim} features; give --heads")
    return heads
