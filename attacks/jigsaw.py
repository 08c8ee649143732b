# SPDX-License-Identifier: Apache-2.0
"""Attacker ``jigsaw``: turn each token into its patch, then lay the patches by their borders.

For tokens that carry no position. Least squares invert the tokens one by one; a network tells from
the set of all tokens where each may belong (a mouth is seldom in a corner); borders and places
together give the cost of a layout, whose weights are chosen on held-out auxiliary people.
"""

import torch
from torch import Tensor

from attacks.attacker import Attacker, Finding, Workshop
from attacks.borders import arrange, border_costs
from attacks.columns import ColumnMatcher
from attacks.decoder import SOLVED_ON
from attacks.ordering import Ordering
from attacks.threat import KNOWN_EDGE
from attacks.view import Geometry, View
from clients.augment import normalise
from equivariance import invert
from split.patches import unfold_patches

__all__ = ["JigsawAttacker"]

WEIGHTS = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Weights of borders against places that are tried."""

JUDGED_ON = 64


class JigsawAttacker(Attacker):
    """Needs the edge to make tokens whose patches it knows."""

    name = "jigsaw"
    threats = (KNOWN_EDGE,)

    def __init__(self, view: View, shop: Workshop) -> None:
        super().__init__(view, shop)
        self.ordering = Ordering(view, shop, {"set": True})
        self.columns = ColumnMatcher(view, self.ordering.fold.learn)
        self.inverse = torch.zeros(view.geometry.dim + 1, 3 * view.geometry.patch_size**2)
        self.weight = WEIGHTS[1]

    @classmethod
    def unfit(cls, geometry: Geometry) -> str | None:
        permuted = "permute-cls = true: jigsaw takes runs whose CLS stays in front"
        return permuted if geometry.permute_prefix else None

    def learn(self) -> None:
        ordering, images = self.ordering, self.view.auxiliary.images
        ordering.learn()
        start = images[ordering.fold.learn[:SOLVED_ON]]
        self.inverse = self._least_squares(ordering.tokens(start, -1).cpu(), normalise(start))
        tokens = ordering.tokens(images[ordering.fold.held_out[:JUDGED_ON]], -3).cpu()
        truth = torch.arange(tokens.shape[1])
        right = {w: float((self._places(tokens, w) == truth).float().mean()) for w in WEIGHTS}
        self.weight = max(WEIGHTS, key=lambda weight: right[weight])

    def attack(self) -> list[Finding]:
        smashed = self.columns.undone(self.view.smashed)
        places = self._places(smashed, self.weight)
        return [Finding(images=self.ordering.decoded(smashed, places), places=places)]

    def _least_squares(self, tokens_BND: Tensor, images_BCHW: Tensor) -> Tensor:
        """[D + 1, P]: the linear map, with an offset, of a token to its patch."""
        tokens = tokens_BND[:, self.view.geometry.prefix :].flatten(0, 1).double()
        patches = unfold_patches(images_BCHW, self.view.geometry.patch_size).flatten(0, 1)
        x = _with_one(tokens)
        gram = x.T @ x
        gram.diagonal().add_(1e-8 * gram.diagonal().mean())
        solution: Tensor = torch.linalg.solve(gram, x.T @ patches.double())
        return solution.float()

    def _places(self, tokens_MND: Tensor, weight: float) -> Tensor:
        """Places [M, N] of received tokens."""
        prefix = self.view.geometry.prefix
        places = []
        for part in torch.split(tokens_MND, 64):
            logits = self.ordering.place_logits("set", part)[:, prefix:, prefix:]
            patches = _with_one(part[:, prefix:]) @ self.inverse
            borders = border_costs(patches, self.view.geometry.patch_size)
            layout = arrange(-logits.log_softmax(dim=-1), borders, weight)
            lead = torch.arange(prefix).expand(len(part), -1)
            places.append(torch.cat([lead, invert(layout) + prefix], dim=1))
        return torch.cat(places)


def _with_one(x: Tensor) -> Tensor:
    return torch.cat([x, torch.ones_like(x[..., :1])], dim=-1)
