# SPDX-License-Identifier: Apache-2.0
"""Threat models: what an attacker may know besides the smashed data and the architecture."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["BLACK_BOX", "KNOWN_EDGE", "THREATS", "TOLD_ORDER", "Grant", "ThreatModel"]


class Grant(StrEnum):
    """One thing that a threat model may grant; the name is that of the field of the view."""

    AUXILIARY = "auxiliary"  # images of people who are no victims, with their attributes
    QUERIES = "queries"  # smashed data of auxiliary images, as a victim's client would send them
    EDGE = "edge"  # the edge's weights, its position embedding among them
    DEFENCE = "defence"  # the defence pipeline with its strengths, not its random numbers
    ORDERS = "orders"  # the row permutations themselves


@dataclass(frozen=True, kw_only=True)
class ThreatModel:
    """What an attacker knows. It always sees the smashed data as sent, and the architecture.

    Parameters
    ----------
    name : str
        As in the tables.
    grants : frozenset of Grant
        What it may use; everything else is withheld.
    description : str
        One sentence for reports.
    """

    name: str
    grants: frozenset[Grant]
    description: str


BLACK_BOX = ThreatModel(
    name="black-box",
    grants=frozenset({Grant.AUXILIARY, Grant.QUERIES}),
    description=(
        "has images of other people and can have a victim's client process them, as the client "
        "would process its own: with the defence, and permuted under the client's key; it knows "
        "neither weights nor key"
    ),
)

KNOWN_EDGE = ThreatModel(
    name="known-edge",
    grants=frozenset({Grant.AUXILIARY, Grant.QUERIES, Grant.EDGE, Grant.DEFENCE}),
    description=(
        "has images of other people, the weights of the edge with its position embedding, and "
        "knows which defence is used, as a server does that averages the clients' weights; it does "
        "not know the key"
    ),
)

TOLD_ORDER = ThreatModel(
    name="told-order",
    grants=KNOWN_EDGE.grants | {Grant.ORDERS},
    description=(
        "knows the edge, the defence and, as an upper bound, the permutation of every sample"
    ),
)

THREATS: dict[str, ThreatModel] = {
    threat.name: threat for threat in (BLACK_BOX, KNOWN_EDGE, TOLD_ORDER)
}
