# SPDX-License-Identifier: Apache-2.0
"""Why a module breaks equivariance, where it can be told from the module and what it takes.

To add a reason: a function here that returns a sentence or None, and its name in `REASONS`.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from equivariance.checking.arrangement import Arrangement
from equivariance.checking.trace import Call
from equivariance.column import check_headwise

__all__ = ["REASONS", "Break", "explain"]

# Of a parameter, buffer or submodule that holds positions; "post_norm" is none.
_POSITIONAL = re.compile(r"wpe|rope|rotary_emb|pos(?:itions?|itional)?(?:_?(?:emb|enc)\w*|_ids)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """The smallest module whose inputs are permuted as they should, and whose outputs are not.

    Parameters
    ----------
    call : Call
        Of the plain run.
    arrangement : Arrangement
        What was permuted.
    heads : int, optional
        Attention heads of the model.
    error : float
        Of its output, relative.
    kept : tuple of str
        Inputs of the model that were not permuted along though they could be.
    shared : bool
        Some of them are not asked for, but serve all samples.
    """

    call: Call
    arrangement: Arrangement
    heads: int | None
    error: float
    kept: tuple[str, ...]
    shared: bool = False


def explain(found: Break) -> str:
    """Give all reasons that can be told, or where to look."""
    reasons = [text for reason in REASONS if (text := reason(found))]
    return "; ".join(reasons) or "its inputs hold and its output does not: look inside"


def _convolution(found: Break) -> str | None:
    if isinstance(found.call.module, nn.modules.conv._ConvNd):
        return "convolution: it weighs neighbours by their place"
    return None


def _window(found: Break) -> str | None:
    kinds = (nn.modules.pooling._MaxPoolNd, nn.modules.pooling._AvgPoolNd, nn.Unfold)
    return "window over neighbouring tokens" if isinstance(found.call.module, kinds) else None


def _recurrent(found: Break) -> str | None:
    return "recurrent: reads tokens in order" if isinstance(found.call.module, nn.RNNBase) else None


def _across_tokens(found: Break) -> str | None:
    module, sizes = found.call.module, found.arrangement.sizes
    mixes = isinstance(module, nn.Linear) and module.in_features == sizes.tokens != sizes.dim
    if found.arrangement.rows is not None and mixes:
        return "its weights belong to places of tokens: a linear layer along the token axis"
    return None


def _dropout(found: Break) -> str | None:
    module = found.call.module
    if not module.training:
        return None
    rates = [getattr(module, name, 0.0) for name in ("dropout", "attention_dropout", "drop_prob")]
    parts = [module, *(part for name, part in module.named_children() if "drop" in name)]
    rates += [getattr(part, name, 0.0) for part in parts for name in ("p", "drop_prob")]
    if any(isinstance(rate, float) and rate > 0 for rate in rates):
        return "dropout or drop-path is active and its randomness is not permuted: call eval()"
    return None


def _causal(found: Break) -> str | None:
    if found.arrangement.rows is None:
        return None
    call = found.call
    flag = call.arguments.get("is_causal")
    declared = flag if flag is not None else getattr(call.module, "is_causal", False)
    masks = [value for name, value in call.arguments.items() if "mask" in name]
    if declared is True or any(_triangular(mask) for mask in masks):
        return "causal mask: a token sees those before it, so the order of tokens matters"
    return None


def _triangular(mask: object) -> bool:
    """Whether a mask [..., N, N], true or -inf where blocked or the opposite, is causal."""
    if not isinstance(mask, Tensor) or mask.ndim < 2 or mask.shape[-1] != mask.shape[-2]:
        return False
    plane = mask.reshape(-1, *mask.shape[-2:])[0]
    upper = torch.ones_like(plane, dtype=torch.bool).triu(1)
    above, below = plane[upper], plane[~upper]
    return plane.numel() > 1 and bool((above == above[0]).all() and (below != above[0]).all())


def _mask(found: Break) -> str | None:
    if found.arrangement.rows is None or not found.kept or not _attends(found.call.module):
        return None
    text = f"not permuted along with the tokens: {', '.join(found.kept)}"
    if found.arrangement.rows.ndim == 2 and found.shared:
        text += "; what is one for all samples cannot follow an order for each: per_sample=False"
    return text


def _attends(module: nn.Module) -> bool:
    names = ("num_heads", "num_attention_heads", "is_causal")
    return "attention" in type(module).__name__.lower() or any(hasattr(module, n) for n in names)


def _position(found: Break) -> str | None:
    module = found.call.module
    names = [name for name, _ in module.named_parameters(recurse=False)]
    names += [name for name, _ in module.named_buffers(recurse=False)]
    names += [name for name, _ in module.named_children()]
    positions = [name for name in names if _POSITIONAL.fullmatch(name)]
    if found.arrangement.rows is None or not positions:
        return None
    hint = "permute after it"
    if "position_ids" in inspect.signature(module.forward).parameters:
        hint += ", or give position_ids, which are permuted along"
    return f"position added inside ({', '.join(positions)}): {hint}"


def _fixed_place(found: Break) -> str | None:
    tokens = found.arrangement.sizes.tokens
    took = any(tokens in x.shape[1:] for x in found.call.inputs)
    gave = any(tokens in x.shape[1:] for x in found.call.outputs)
    if found.arrangement.rows is not None and took and not gave:
        return "it reads tokens by place (a CLS token?): keep leading tokens by `prefix`"
    return None


def _rotary(found: Break) -> str | None:
    named = type(found.call.module).__name__.lower()
    taken = any(
        name in ("rope", "position_embeddings", "freqs_cis") and value is not None
        for name, value in found.call.arguments.items()
    )
    if "rope" in named or "rotary" in named or taken:
        return "rotary positions: they belong to the place of a token and pair features of a head"
    return None


def _heads(found: Break) -> str | None:
    columns = found.arrangement.columns
    if columns is None or not found.heads:
        return None
    try:
        check_headwise(columns, found.heads)
    except ValueError as error:
        return str(error)
    return None


def _precision(found: Break) -> str | None:
    if found.error < 1e-5:
        return "so small an error may be rounding: does it compute in a lower precision inside?"
    return None


REASONS: tuple[Callable[[Break], str | None], ...] = (
    _convolution,
    _window,
    _recurrent,
    _across_tokens,
    _dropout,
    _causal,
    _mask,
    _position,
    _fixed_place,
    _rotary,
    _heads,
    _precision,
)
