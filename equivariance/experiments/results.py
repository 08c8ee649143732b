# SPDX-License-Identifier: Apache-2.0
"""The table of an experiment: one row per quantity and case, beside the paper's number.

=============  =====================================================================
`quantity`     what was measured, with its unit
`case`         under which permutation
`value`        the measurement; for comparisons of tensors the largest reference entry
`paper`        the paper's number (single, no seeds) or words; empty if it has none
`claim`        what must hold of the row, see `Claim`; empty: only measured
`max_abs`      largest difference from the reference
`max_rel`      that over the largest entry of the reference
`tolerance`    what the claim allows: see `Claim`
`holds`        whether the claim holds; missing where there is none
=============  =====================================================================
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum

import pandas as pd
import torch
from torch import Tensor

__all__ = ["Claim", "Results", "Row", "failures"]

Tensors = Tensor | Mapping[str, Tensor]
Paper = float | str | None


class Claim(StrEnum):
    """What a row asserts, and which number its tolerance bounds."""

    EQUAL = "equal"
    """`max_rel` is at most the tolerance."""
    DIFFERENT = "different"
    """Negative control: `max_rel` is at least the tolerance."""
    CHANCE = "at chance"
    """`max_abs`, the distance from chance, is at most the tolerance, and the plain model's is more:
    what never learned anything has nothing to lose."""
    WORSE = "worse"
    """The value is on the bad side of the reference by at least the tolerance."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row; the fields are the columns that the module describes."""

    quantity: str
    case: str
    value: float
    paper: Paper = None
    claim: Claim | None = None
    max_abs: float | None = None
    max_rel: float | None = None
    tolerance: float | None = None
    holds: bool | None = None


class Results:
    """Rows as they are measured."""

    def __init__(self) -> None:
        self._rows: list[Row] = []

    def measured(self, quantity: str, case: str, value: float, *, paper: Paper = None) -> None:
        """Add a number of which nothing is claimed."""
        self._rows.append(Row(quantity=quantity, case=case, value=value, paper=paper))

    def equal(
        self,
        quantity: str,
        case: str,
        value: Tensors | float,
        reference: Tensors | float,
        *,
        tolerance: float,
        paper: Paper = None,
    ) -> None:
        """Claim that numbers, tensors or tensors by name are those of the reference."""
        self._compare(Claim.EQUAL, quantity, case, value, reference, tolerance, paper)

    def different(
        self,
        quantity: str,
        case: str,
        value: Tensors | float,
        reference: Tensors | float,
        *,
        tolerance: float = 1e-3,
        paper: Paper = None,
    ) -> None:
        """Claim, as a negative control, that they differ by more than rounding."""
        self._compare(Claim.DIFFERENT, quantity, case, value, reference, tolerance, paper)

    def at_chance(
        self,
        quantity: str,
        case: str,
        value: float,
        chance: float,
        *,
        plain: float,
        tolerance: float,
        paper: Paper = None,
    ) -> None:
        """Claim that a number is within `tolerance` of what guessing reaches, and `plain` beyond.

        `plain` is what the model reaches with its key.
        """
        distance = abs(value - chance)
        self._rows.append(
            Row(
                quantity=quantity,
                case=case,
                value=value,
                paper=paper,
                claim=Claim.CHANCE,
                max_abs=distance,
                tolerance=tolerance,
                holds=distance <= tolerance < plain - chance,
            )
        )

    def worse(
        self,
        quantity: str,
        case: str,
        value: float,
        reference: float,
        *,
        tolerance: float,
        higher_is_better: bool = True,
        paper: Paper = None,
    ) -> None:
        """Claim that a number is worse than the reference by at least `tolerance`."""
        loss = reference - value if higher_is_better else value - reference
        self._rows.append(
            Row(
                quantity=quantity,
                case=case,
                value=value,
                paper=paper,
                claim=Claim.WORSE,
                max_abs=abs(loss),
                tolerance=tolerance,
                holds=loss >= tolerance,
            )
        )

    def frame(self) -> pd.DataFrame:
        """Return the table; `paper` and `holds` are of dtype object, numbers float64."""
        table = pd.DataFrame(
            [asdict(row) for row in self._rows], columns=[field.name for field in fields(Row)]
        )
        numbers = ["value", "max_abs", "max_rel", "tolerance"]
        table[numbers] = table[numbers].astype("float64")
        return table.astype({"claim": "object", "paper": "object", "holds": "object"})

    def _compare(
        self,
        claim: Claim,
        quantity: str,
        case: str,
        value: Tensors | float,
        reference: Tensors | float,
        tolerance: float,
        paper: Paper,
    ) -> None:
        max_abs, scale = _difference(_named(value), _named(reference))
        max_rel = max_abs / scale if scale else max_abs
        self._rows.append(
            Row(
                quantity=quantity,
                case=case,
                value=value if isinstance(value, float | int) else scale,
                paper=paper,
                claim=claim,
                max_abs=max_abs,
                max_rel=max_rel,
                tolerance=tolerance,
                holds=max_rel <= tolerance if claim is Claim.EQUAL else max_rel >= tolerance,
            )
        )


def failures(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows whose claim does not hold."""
    return table[[holds is False or holds == 0 for holds in table["holds"].fillna(True)]]


def _named(value: Tensors | float) -> Mapping[str, Tensor]:
    if isinstance(value, Mapping):
        return value
    return {"": value if isinstance(value, Tensor) else torch.tensor(float(value))}


def _difference(
    value: Mapping[str, Tensor], reference: Mapping[str, Tensor]
) -> tuple[float, float]:
    """Largest difference of any entry, and largest entry of the reference.

    One scale for all tensors: a gradient that is zero in theory, as that of a key's bias, is
    rounding noise and has no scale of its own. Not a number counts as infinitely different.
    """
    if value.keys() != reference.keys():
        raise ValueError(f"names differ: {sorted(value.keys() ^ reference.keys())}")
    largest, scale = 0.0, 0.0
    for name, expected in reference.items():
        if expected.numel():
            gap = (value[name].double() - expected.double()).abs().max().nan_to_num(torch.inf)
            largest = max(largest, float(gap))
            scale = max(scale, float(expected.abs().max()))
    return largest, scale
