# SPDX-License-Identifier: Apache-2.0
"""What a model file's surroundings tell, and its parameters do not: heads, rotary positions."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

from equivariance.heads import attention_heads
from equivariance.locking.errors import LockError
from equivariance.locking.tensor_file import TensorFile
from equivariance.rotary import rotary_module

__all__ = ["check_told_not_rotary", "find_heads"]

_NUMBERS = ("num_attention_heads", "n_head", "num_heads", "nhead")
_TIMM_NAMES = ("timm", "architecture")
_ROTARY = ("rope_theta", "rope_scaling", "rope_parameters", "rotary_dim", "rotary_pct")


def find_heads(file: TensorFile, dim: int, given: int | None = None) -> int:
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
    given : int, optional
        What the caller says.

    Raises
    ------
    LockError
        If nothing tells, what tells does not divide `dim`, or it is not what the caller says.
    """
    if given is not None and not _fits(given, dim):
        raise LockError(f"heads {given}: must divide the {dim} features")
    value, source = next(_told_heads(file), (None, ""))
    if value is None and given is None:
        raise LockError("nothing tells the number of attention heads: give --heads")
    if value is None or (given is not None and not _fits(value, dim)):
        return int(str(given))
    if not _fits(value, dim):
        raise LockError(f"{source} is {value}: must divide the {dim} features; give --heads")
    if given is not None and str(value) != str(given):
        raise LockError(f"heads {given}: {source} is {value}; one of them is wrong")
    return int(str(value))


def check_told_not_rotary(file: TensorFile) -> None:
    """Refuse `headwise` for a file whose metadata or `config.json` tell of rotary positions.

    Raises
    ------
    LockError
        If they do.
    """
    for where, values in _surroundings(file):
        found = next((name for name in _ROTARY if values.get(name) is not None), None)
        for name in () if found else _TIMM_NAMES:
            model = _timm_model(values.get(name))
            if model is not None and rotary_module(model) is not None:
                found = f"{name} {values[name]}"
        if found:
            raise LockError(
                f"{found} of its {where} tells of rotary positions, which pair the features inside "
                f"a head: inner headwise is wrong for them, use inner none"
            )


def _told_heads(file: TensorFile) -> Iterator[tuple[object, str]]:
    for where, values in _surroundings(file):
        for name in _NUMBERS:
            if name in values:
                yield values[name], f"{name} of its {where}"
        for name in _TIMM_NAMES:
            model = _timm_model(values.get(name))
            heads = set() if model is None else set(attention_heads(model).values())
            if len(heads) == 1:
                yield heads.pop(), f"heads of {name} of its {where}"


def _surroundings(file: TensorFile) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield "metadata", file.metadata
    try:
        config = json.loads((file.path.parent / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return
    if isinstance(config, dict):
        yield "config.json", config


def _timm_model(name: object) -> nn.Module | None:
    import timm  # takes long to import, and is needed here alone

    if not isinstance(name, str) or not timm.is_model(name):
        return None
    with torch.device("meta"):
        model: nn.Module = timm.create_model(name)
    return model


def _fits(heads: object, dim: int) -> bool:
    text = str(heads)
    return text.isascii() and text.isdigit() and int(text) > 0 and dim % int(text) == 0
