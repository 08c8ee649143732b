# SPDX-License-Identifier: Apache-2.0
"""Attacker ``position``: where does each token belong? Then it decodes the tokens in that order.

This is what breaks permutation where tokens carry their position. Two predictors are tried: one
looks at each token alone, one attends over the whole set of tokens; a Hungarian assignment makes a
permutation of either's answers, and a decoder that learned on ordered tokens does the rest. The
``best`` of both is the one that did better on held-out auxiliary people.
"""

from attacks.attacker import Attacker, Finding, Workshop
from attacks.columns import ColumnMatcher
from attacks.ordering import Ordering, assigned
from attacks.threat import KNOWN_EDGE
from attacks.view import View

__all__ = ["PositionAttacker"]

WAYS = {"per-token": False, "set": True}


class PositionAttacker(Attacker):
    """Knows edge and defence, so it makes its own training data, whose order it knows."""

    name = "position"
    threats = (KNOWN_EDGE,)

    def __init__(self, view: View, shop: Workshop) -> None:
        super().__init__(view, shop)
        self.ordering = Ordering(view, shop, WAYS)
        self.columns = ColumnMatcher(view, self.ordering.fold.learn)

    def learn(self) -> None:
        self.ordering.learn()

    def attack(self) -> list[Finding]:
        smashed = self.columns.undone(self.view.smashed)
        findings: dict[str, Finding] = {}
        for way in WAYS:
            places = assigned(self.ordering.place_logits(way, smashed))
            images = self.ordering.decoded(smashed, places)
            findings[way] = Finding(variant=way, images=images, places=places)
        losses = self.ordering.held_out
        best = findings[min(losses, key=lambda way: losses[way])]
        return [*findings.values(), Finding(variant="best", images=best.images, places=best.places)]
