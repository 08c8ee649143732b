# SPDX-License-Identifier: Apache-2.0
"""Does a model commute with permutations of tokens and features, and if not, where does it break?

The model runs plain and permuted on the same inputs, forward and backward. What every submodule
gives, the gradients that reach it, and the gradients of its parameters are compared.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, fields
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, get_args

import torch
from torch import Tensor, nn

from equivariance.checking.compare import Comparison, Line
from equivariance.checking.run import PlainRun
from equivariance.checking.stack import find_heads, find_width
from equivariance.column import Inner, sample_column_order
from equivariance.conjugation import ConjugationError
from equivariance.keys import Secret
from equivariance.permutation import ColumnPermutation, RowPermutation
from equivariance.rules import Rule, UnknownArchitectureError, rules_for

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TESTS", "Place", "Test", "check_equivariance", "first_broken"]

Test = Literal["row", "column", "both"]
Place = Literal["input", "blocks"]
TESTS: tuple[Test, ...] = get_args(Test)
# Relative errors that rounding alone may give in deep models.
_TOLERANCE = {torch.float64: 2e-12, torch.float32: 1e-4}
_MAX_TOLERANCE = 0.1
_SECRET = Secret.from_seed(0, "check")


def check_equivariance(
    model: nn.Module,
    inputs: Tensor | Sequence[Any] | Mapping[str, Any],
    *,
    tests: Sequence[Test] = ("row", "column"),
    at: Place | None = None,
    rows: RowPermutation | None = None,
    columns: ColumnPermutation | Tensor | None = None,
    heads: int | None = None,
    inner: Inner = "headwise",
    rules: Sequence[Rule] | None = None,
    keep: Collection[str] = (),
    prefix: int = 0,
    per_sample: bool = True,
    batch_first: bool = True,
    dtype: torch.dtype = torch.float64,
    tolerance: float | None = None,
    secret: Secret = _SECRET,
) -> "pd.DataFrame":
    """Check row and column permutation equivariance of any model, submodule by submodule.

    The model itself is not changed: a copy runs, where the model is and in the mode (`train` or
    `eval`) that it is in, under a fixed seed. Memory holds the activations of two runs.

    It sees what these weights do with these inputs: a branch that a gate of zeros shuts, as
    LayerScale or a zero-initialised projection may be before training, breaks nothing. Give such a
    model weights that are trained or drawn. `torch.compile` and data parallel wrappers are looked
    through.

    Parameters
    ----------
    model : nn.Module
        A block, a stack of blocks or a whole model.
    inputs : Tensor, sequence or mapping
        What it takes, by position or by name. The first is the stream: features [B, N, D], token
        ids [B, N], or, with `at="blocks"`, whatever the model takes. Others are permuted along:
        `position_ids`, `token_type_ids`, padding masks [B, N], masks of pairs [..., N, N].
    tests : sequence of {"row", "column", "both"}
        `row` permutes tokens; `column` permutes features and conjugates the model; `both` does both
        at once.
    at : {"input", "blocks"}, optional
        Where the permutation starts. `input`: at the model's inputs, and outputs come out permuted;
        embeddings and final norm are conjugated too. `blocks`: the paper's sandwich, just before
        the first block, undone just after the last, for models whose blocks are known. By default
        `input`, but `blocks` if the first input has no shape of a stream, as pixels.
    rows : RowPermutation, optional
        By default drawn from `secret`, one for each sample (`per_sample`) or one for all.
    columns : ColumnPermutation or Tensor, optional
        By default drawn from `secret`, as `inner` says. A Tensor [D] may mix heads: to see it
        break.
    heads : int, optional
        Attention heads; by default read from the model.
    inner : {"headwise", "none"}
        As for `conjugate_state`; a ColumnPermutation says it itself.
    rules : sequence of Rule, optional
        By default `rules_for(model)`.
    keep : collection of str
        Names of inputs that are not permuted along.
    prefix : int
        Leading tokens, as CLS, that stay where they are.
    per_sample, batch_first : bool
        A row order for each sample; [B, N, D] rather than PyTorch's [N, B, D].
    dtype : torch.dtype
        In which to compute.
    tolerance : float, optional
        Largest relative error that holds, 0 ... 0.1; by default 2e-12 in float64 and 1e-4 in
        float32. For dtypes of fewer digits it must be given: rounding hides much there.
    secret : Secret
        Of the permutations.

    Returns
    -------
    DataFrame
        A line for each thing compared: `test`; `quantity`, one of `output`, `gradient` (of the loss
        by that output, or by an input) and `weights` (gradients of a module's own parameters);
        `module` by name, "" the model itself; its `type`; the `relation` found (`same`, `tokens`,
        `features`, both, or `none`); `error`, the largest deviation relative to the largest entry
        (of gradients, at least a thousandth of the largest of all); whether it `holds`; and `why`
        not, on the lines where it begins to break. In each test outputs come first, in the order
        of computation. `first_broken` finds the line to read.

    Raises
    ------
    ValueError
        If inputs have no shape that is known, nothing can be permuted (fewer than two tokens that
        may move, one feature), the model returns no tensor or is scripted, `tolerance` is missing
        or too large, or the blocks or heads are not found. A model whose parameters have no rule is
        no error: its column tests do not hold, and `why` lists them.
    """
    import pandas as pd  # here, so that whoever only permutes does without

    if not set(tests) <= set(TESTS) or at not in (None, *get_args(Place)):
        allowed = f"tests {', '.join(TESTS)} at {', '.join(get_args(Place))}"
        raise ValueError(f"tests {list(tests)} at {at!r}: allowed are {allowed}")
    tolerance = _tolerance(dtype, tolerance)
    plain = PlainRun.of(model, inputs, at=at, keep=keep, batch_first=batch_first, dtype=dtype)
    if isinstance(columns, ColumnPermutation):
        inner, heads, columns = columns.inner, columns.heads or heads, columns.order
    if rows is None and set(tests) != {"column"}:
        rows = _drawn_rows(plain, secret, per_sample=per_sample, prefix=prefix)
    heads = heads or find_heads(plain.model)
    table: list[dict[str, Any]] = []
    for test in tests:
        try:
            order, found_rules = columns, tuple(rules or ())
            if test != "row":
                found_rules = found_rules or rules_for(plain.model, scope=plain.scope)
                order = _drawn(plain, found_rules, heads, inner, secret) if order is None else order
            lines = Comparison(
                plain=plain,
                rows=None if test == "column" or rows is None else rows.order,
                columns=None if test == "row" else order,
                inner=inner,
                rules=found_rules,
                heads=heads,
                tolerance=tolerance,
            ).lines()
        except (ConjugationError, UnknownArchitectureError) as error:
            lines = [_impossible(model, error)]
        table += [{"test": test, **asdict(line)} for line in lines]
    return pd.DataFrame(table, columns=["test", *(field.name for field in fields(Line))])


def first_broken(report: "pd.DataFrame") -> "pd.Series[Any] | None":
    """Return the line of a report where equivariance begins to break, or None if all hold."""
    broken = report[~report["holds"]]
    if broken.empty:
        return None
    begins = broken[broken["why"] != ""]
    return (broken if begins.empty else begins).iloc[0]


def _tolerance(dtype: torch.dtype, given: float | None) -> float:
    if given is None and dtype not in _TOLERANCE:
        raise ValueError(
            f"tolerance: must be given for {dtype}; it has a default for float64 and float32"
        )
    tolerance = _TOLERANCE[dtype] if given is None else given
    if not 0 <= tolerance <= _MAX_TOLERANCE:
        raise ValueError(f"tolerance {tolerance}: allowed is 0 ... {_MAX_TOLERANCE}, relative")
    return tolerance


def _drawn_rows(
    plain: PlainRun, secret: Secret, *, per_sample: bool, prefix: int
) -> RowPermutation:
    """Draw row orders, each of which moves some token."""
    batch, tokens = plain.sizes.batch if per_sample else None, plain.sizes.tokens
    if tokens - prefix < 2:
        raise ValueError(
            f"nothing to permute: {tokens} tokens, of which {prefix} stay (prefix); "
            f"at least two must be free"
        )
    own = torch.arange(tokens)
    rows = RowPermutation.sample(secret, tokens=tokens, batch=batch, prefix=prefix)
    for attempt in count():
        still = (rows.order == own).all(dim=-1, keepdim=True)
        if not bool(still.any()):
            break
        again = RowPermutation.sample(
            secret.derive("again", attempt), tokens=tokens, batch=batch, prefix=prefix
        )
        rows = RowPermutation(torch.where(still, again.order, rows.order))
    return rows


def _drawn(
    plain: PlainRun, rules: Sequence[Rule], heads: int | None, inner: Inner, secret: Secret
) -> Tensor:
    """Draw a column permutation of the group that `inner` admits; it moves some feature."""
    if inner == "headwise" and heads is None:
        raise ValueError('heads: the model does not tell how many; give heads, or inner="none"')
    dim = plain.sizes.dim or find_width(plain.model, rules)
    group = heads if inner == "headwise" and heads is not None else 1
    if dim < 2:
        raise ValueError(f"nothing to permute: the model has {dim} feature")
    order = sample_column_order(secret, dim=dim, heads=group)
    for attempt in count():
        if not torch.equal(order, torch.arange(dim)):
            break
        order = sample_column_order(secret.derive("again", attempt), dim=dim, heads=group)
    return order


def _impossible(model: nn.Module, error: Exception) -> Line:
    return Line(
        quantity="output",
        module="",
        type=type(model).__name__,
        relation="none",
        error=float("nan"),
        holds=False,
        why=f"not compared: {error}",
    )
