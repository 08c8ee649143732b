# SPDX-License-Identifier: Apache-2.0
"""Attacker ``attributes``: what kind of person is it? No picture is needed for that.

The trunk classifies permuted tokens, so anyone can who learns to. Order does not matter to it.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from attacks.attacker import Attacker, Finding, Workshop
from attacks.decoder import SOLVED_ON
from attacks.images import mirrored
from attacks.learning import Recipe, fit, split_auxiliary
from attacks.networks import TokenClassifier
from attacks.threat import BLACK_BOX
from attacks.view import View
from split import derive_seed
from split.seeds import seeded

__all__ = ["AttributesAttacker"]


class AttributesAttacker(Attacker):
    """A permutation-invariant classifier, learned on queries of auxiliary images."""

    name = "attributes"
    threats = (BLACK_BOX,)

    def __init__(self, view: View, shop: Workshop) -> None:
        super().__init__(view, shop)
        with seeded(derive_seed(shop.options.seed, "attributes")):
            self.network = TokenClassifier(view.geometry).to(shop.device).eval()

    def learn(self) -> None:
        options, device, auxiliary = self.shop.options, self.shop.device, self.view.auxiliary
        fold = split_auxiliary(auxiliary, options.seed)
        labels = torch.from_numpy(auxiliary.labels.astype(np.float32)).to(device)
        start = self.view.queries(auxiliary.images[fold.learn[:SOLVED_ON]], 0)
        self.network.standardise.measure(start.to(device))

        def loss(rows: NDArray[np.int64], index: int) -> Tensor:
            batch = mirrored(auxiliary.images[rows], derive_seed(options.seed, self.name, index))
            logits = self.network(self.view.queries(batch, index + 1).to(device))
            return functional.binary_cross_entropy_with_logits(logits, labels[rows])

        recipe = Recipe(epochs=options.epochs or 20)
        fit(self.name, self.network, loss, fold, recipe, self.shop)

    @torch.no_grad()
    def attack(self) -> list[Finding]:
        device = self.shop.device
        parts = [self.network(t.to(device)).cpu() for t in torch.split(self.view.smashed, 64)]
        return [Finding(scores=torch.cat(parts))]
