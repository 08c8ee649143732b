# SPDX-License-Identifier: Apache-2.0
"""A permuted run, compared with the plain one."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from equivariance.checking.arrangement import Arrangement
from equivariance.checking.reasons import Break, explain
from equivariance.checking.relations import Relation, distance, relate
from equivariance.checking.run import PlainRun
from equivariance.checking.stack import find_blocks
from equivariance.checking.trace import Call, Trace, backward, forward
from equivariance.column import Inner
from equivariance.conjugation import conjugate_state, conjugate_unchecked_
from equivariance.rules import Rule

__all__ = ["Comparison", "Line", "Quantity"]

Quantity = Literal["output", "gradient", "weights"]
# Gradients that are zero but for rounding, as that of a key's bias, are not compared with
# themselves but with this share of the largest.
_FLOOR = 1e-3
_STANDS = (
    "its output has the shape of tokens and does not move with them; if only by chance it has as "
    "many entries as there are tokens, check with another number of tokens"
)


@dataclass(slots=True, kw_only=True)
class Line:
    """A line of the report: see `check_equivariance`."""

    quantity: Quantity
    module: str
    type: str
    relation: str
    error: float
    holds: bool
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What is permuted and how it is compared.

    Parameters
    ----------
    plain : PlainRun
        The other side.
    rows : Tensor, optional
        [N] or [B, N].
    columns : Tensor, optional
        [D].
    inner : {"headwise", "none"}
        As for `conjugate_state`, but whether `columns` mixes heads is not checked.
    rules : sequence of Rule
        For conjugation.
    heads : int, optional
        Attention heads, to follow features into them and to explain.
    tolerance : float
        Largest relative error that holds.
    """

    plain: PlainRun
    rows: Tensor | None
    columns: Tensor | None
    inner: Inner
    rules: Sequence[Rule]
    heads: int | None
    tolerance: float

    def lines(self) -> list[Line]:
        """Run the permuted model and compare; outputs, gradients, weights, in this order.

        Raises
        ------
        ConjugationError
            If a parameter has no rule or does not fit it.
        """
        plain, arrangement = self.plain, self._arrangement
        model = self._conjugated_model()
        blocks = find_blocks(model) if plain.sandwich else []
        sandwich = arrangement if plain.sandwich else None
        trace = forward(model, plain.arranged(arrangement), blocks=blocks, arrangement=sandwich)
        relations = [
            self._relate(a, b) for a, b in zip(plain.trace.outputs, trace.outputs, strict=True)
        ]
        upstream = [r.change(u) for r, u in zip(relations, plain.upstream, strict=True)]
        backward(trace.outputs, upstream)
        outputs = list(self._outputs(trace))
        gradients = [*self._gradients(trace), *self._weights(model)]
        model.zero_grad(set_to_none=True)
        begins = next((line for line in gradients if not line.holds), None)
        if begins is not None and all(line.holds for line in outputs):
            begins.why = "the forward pass holds, this gradient does not: look at what follows it"
        return outputs + gradients

    @property
    def _arrangement(self) -> Arrangement:
        plain = self.plain
        return Arrangement(
            sizes=plain.sizes,
            rows=self.rows,
            columns=self.columns,
            head_order=self._head_order,
            heads=self.heads,
            keep=plain.keep,
        )

    @property
    def _head_order(self) -> Tensor | None:
        """The order of whole heads, if features are permuted within attention and keep to them."""
        order, heads = self.columns, self.heads
        if order is None or self.inner == "none" or not heads or order.numel() % heads:
            return None
        source = order.reshape(heads, -1) // (order.numel() // heads)
        return source[:, 0] if bool((source == source[:, :1]).all()) else None

    def _conjugated_model(self) -> nn.Module:
        if self.columns is None:
            return self.plain.model
        model = copy.deepcopy(self.plain.model)
        conjugate_unchecked_(model, self.columns, heads=1, inner=self.inner, rules=self.rules)
        return model

    def _relate(self, plain: Tensor, permuted: Tensor, floor: float = 0.0) -> Relation:
        return relate(
            plain,
            permuted,
            self._arrangement,
            heads=self.heads,
            tolerance=self.tolerance,
            floor=floor,
        )

    def _line(self, quantity: Quantity, call: Call, relations: Sequence[Relation]) -> Line:
        worst = max(relations, key=lambda relation: relation.error)
        holds = worst.error <= self.tolerance
        return Line(
            quantity=quantity,
            module=call.name,
            type=type(call.module).__name__,
            relation=relations[0].name if holds else "none",
            error=worst.error,
            holds=holds,
        )

    def _outputs(self, trace: Trace) -> Iterator[Line]:
        begins: list[str] = []
        for plain, permuted in _pairs(self.plain.trace, trace):
            relations = [self._relate(a, b) for a, b in _zip(plain.outputs, permuted.outputs)]
            if not relations:
                continue
            line = self._line("output", plain, relations)
            if line.holds and not plain.name and (error := self._standing(plain, relations)):
                line.holds, line.relation, line.error, line.why = False, "none", error, _STANDS
                yield line
                continue
            inside = any(name.startswith(f"{plain.name}.") or not plain.name for name in begins)
            if not line.holds and not inside and self._inputs_hold(plain, permuted):
                begins.append(plain.name)
                line.why = self._explain(plain, line.error)
            yield line

    def _standing(self, root: Call, relations: Sequence[Relation]) -> float:
        """How far the model's outputs [B, N, ...] would have to move, if they do not."""
        sizes, arrangement = self.plain.sizes, self._arrangement
        by_token = (sizes.batch, sizes.tokens)[:: 1 if sizes.batch_first else -1]
        if self.rows is None or self.plain.sandwich:
            return 0.0
        moved = [
            distance(arrangement.tokens(x), x)
            for x, relation in zip(root.outputs, relations, strict=True)
            if relation.name in ("same", "features") and x.ndim > 2 and x.shape[:2] == by_token
        ]
        return max(moved, default=0.0)

    def _inputs_hold(self, plain: Call, permuted: Call) -> bool:
        pairs = _zip(plain.inputs, permuted.inputs)
        return all(self._relate(a, b).error <= self.tolerance for a, b in pairs)

    def _explain(self, call: Call, error: float) -> str:
        arrangement = self._arrangement
        kept = self.plain.kept(arrangement)
        return explain(
            Break(
                call=call,
                arrangement=arrangement,
                heads=self.heads if self.inner == "headwise" else None,
                error=error,
                kept=kept,
                shared=not set(kept) <= set(self.plain.keep),
            )
        )

    def _gradients(self, trace: Trace) -> Iterator[Line]:
        """Compare gradients of outputs in the order of the backward pass, then of the inputs."""
        pairs = _pairs(self.plain.trace, trace)
        largest = max((_largest(call.outputs) for call, _ in pairs), default=0.0)
        for plain, permuted in reversed(pairs):
            relations = [
                self._relate(a.grad, b.grad, _FLOOR * largest)
                for a, b in _zip(plain.outputs, permuted.outputs)
                if a.grad is not None and b.grad is not None
            ]
            if relations:
                yield self._line("gradient", plain, relations)
        root = self.plain.trace.calls[-1].module
        for name, leaf in self.plain.trace.leaves.items():
            other = trace.leaves[name]
            if leaf.grad is not None and other.grad is not None:
                call = Call(f"input {name}", root, [], [], {})
                relation = self._relate(leaf.grad, other.grad, _FLOOR * largest)
                yield self._line("gradient", call, [relation])

    def _weights(self, model: nn.Module) -> Iterator[Line]:
        expected = self.plain.gradients
        if self.columns is not None:
            expected = conjugate_state(
                expected, self.columns, heads=1, inner=self.inner, rules=self.rules
            )
        largest = max((float(g.abs().max()) for g in expected.values()), default=0.0)
        for prefix, module in model.named_modules():
            own = [
                (expected[name], parameter.grad)
                for key, parameter in module.named_parameters(recurse=False)
                if (name := f"{prefix}.{key}".lstrip(".")) in expected
            ]
            if not own:
                continue
            scale = max(_FLOOR * largest, *(float(g.abs().max()) for g, _ in own))
            error = max(_deviation(g, found) for g, found in own) / scale if scale else 0.0
            relation = Relation("conjugated" if self.columns is not None else "same", error, _keep)
            yield self._line("weights", Call(prefix, module, [], [], {}), [relation])


def _pairs(plain: Trace, permuted: Trace) -> list[tuple[Call, Call]]:
    names = [[call.name for call in trace.calls] for trace in (plain, permuted)]
    if names[0] != names[1]:
        raise ValueError("the model calls other submodules when its inputs are permuted")
    return list(zip(plain.calls, permuted.calls, strict=True))


def _zip(plain: Sequence[Tensor], permuted: Sequence[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
    return zip(plain, permuted, strict=True)


def _largest(tensors: Sequence[Tensor]) -> float:
    gradients = [x.grad for x in tensors if x.grad is not None]
    return max((float(g.abs().max()) for g in gradients), default=0.0)


def _deviation(expected: Tensor, found: Tensor | None) -> float:
    return float((expected if found is None else expected - found).abs().max())


def _keep(x: Tensor) -> Tensor:
    return x
