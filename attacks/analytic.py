# SPDX-License-Identifier: Apache-2.0
"""Attacker ``analytic``: at cut 0, with known weights, each token is a linear image of one patch.

``inverse`` applies the pseudo-inverse of the patch embedding; with no fewer features than values in
a patch and no defence it is exact. ``posterior`` takes the best linear guess by the statistics of
auxiliary patches instead, which also removes part of a known defence's noise. Positions come from
the likelihood of each token at each place, in which the position embedding speaks, and an
assignment of all; or from the order itself, where the threat model tells it.
"""

import torch
from torch import Tensor

from attacks.assignment import assign
from attacks.attacker import Attacker, Finding, Workshop
from attacks.columns import ColumnMatcher
from attacks.images import to_unit
from attacks.learning import split_auxiliary
from attacks.ordering import assigned, in_edge_order
from attacks.patch_prior import PatchPrior
from attacks.threat import KNOWN_EDGE, TOLD_ORDER, Grant
from attacks.view import Geometry, View
from split.patches import fold_patches

__all__ = ["AnalyticAttacker"]


class AnalyticAttacker(Attacker):
    """Linear algebra; nothing is learned but mean and covariance of patches."""

    name = "analytic"
    threats = (KNOWN_EDGE, TOLD_ORDER)
    learns = False

    def __init__(self, view: View, shop: Workshop) -> None:
        super().__init__(view, shop)
        rows = split_auxiliary(view.auxiliary, shop.options.seed).learn
        self.columns = ColumnMatcher(view, rows)
        self.prior = PatchPrior(view, rows)

    @classmethod
    def unfit(cls, geometry: Geometry) -> str | None:
        return None if geometry.cut == 0 else f"cut = {geometry.cut}: analytic takes cut = 0"

    def learn(self) -> None:
        """The statistics are taken already."""

    def attack(self) -> list[Finding]:
        smashed = self.columns.undone(self.view.smashed)
        told = self.view.grants(Grant.ORDERS)
        places = self.view.orders if told else self._places(smashed)
        tokens = in_edge_order(smashed, places)[:, self.view.geometry.prefix :]
        ways = {"inverse": self.prior.inverse, "posterior": self.prior.posterior}
        return [
            Finding(
                variant=way,
                images=self._images(solve(tokens)),
                places=None if told else places,
            )
            for way, solve in ways.items()
        ]

    def _places(self, smashed_MND: Tensor) -> Tensor:
        """Places [M, N] of all tokens; each prefix token is the one most like what is expected."""
        prefix = self.view.geometry.prefix
        lead = torch.arange(prefix).expand(len(smashed_MND), -1)
        if self.view.geometry.permute_prefix:
            expected = self.prior.prefix_tokens.expand(len(smashed_MND), -1, -1)
            lead = assign(torch.cdist(expected, smashed_MND.double()))
        is_lead = torch.zeros(smashed_MND.shape[:2]).scatter_(1, lead, 1.0)
        others = is_lead.argsort(dim=1, stable=True)[:, : smashed_MND.shape[1] - prefix]
        body = smashed_MND.gather(1, others.unsqueeze(-1).expand(-1, -1, smashed_MND.shape[2]))
        found = torch.cat([assigned(self.prior.place_logits(t)) for t in torch.split(body, 64)])
        places = torch.empty(smashed_MND.shape[:2], dtype=torch.int64)
        places.scatter_(1, lead, torch.arange(prefix).expand(len(lead), -1))
        return places.scatter_(1, others, found + prefix)

    def _images(self, patches_MnP: Tensor) -> Tensor:
        side, patch = self.view.geometry.image_size, self.view.geometry.patch_size
        return to_unit(fold_patches(patches_MnP.float(), patch, side, side))
