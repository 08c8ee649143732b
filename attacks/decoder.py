# SPDX-License-Identifier: Apache-2.0
"""Attacker ``decoder``: the paper's black box, a ViT decoder on tokens in the order received."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from attacks.attacker import Attacker, Finding
from attacks.images import mirrored, to_unit
from attacks.learning import Recipe, fit, split_auxiliary
from attacks.networks import TokenDecoder
from attacks.threat import BLACK_BOX
from clients.augment import normalise
from split import derive_seed
from split.seeds import seeded

__all__ = ["DecoderAttacker", "decoded"]

SOLVED_ON = 512


class DecoderAttacker(Attacker):
    """Learns on queries of auxiliary images, defended and permuted as the victims' data.

    Its loss is the mean squared error on pixels in [-1, 1], as in the paper.
    """

    name = "decoder"
    threats = (BLACK_BOX,)

    def learn(self) -> None:
        options, device = self.shop.options, self.shop.device
        images = self.view.auxiliary.images
        fold = split_auxiliary(self.view.auxiliary, options.seed)
        start = images[fold.learn[:SOLVED_ON]]
        self.network.solve(self._query(start, -1).to(device), normalise(start).to(device))

        def loss(rows: NDArray[np.int64], index: int) -> Tensor:
            batch = mirrored(images[rows], derive_seed(options.seed, "decoder", index))
            target = normalise(batch).to(device)
            tokens = self._query(batch, index).to(device)
            return functional.mse_loss(self.network(tokens), target)

        recipe = Recipe(epochs=options.epochs or 30)
        fit("decoder", self.network, loss, fold, recipe, self.shop)

    def attack(self) -> list[Finding]:
        return [Finding(images=decoded(self.network, self.view.smashed, self.shop.device))]

    def _query(self, images: NDArray[np.uint8], index: int) -> Tensor:
        return self.view.queries(images, index + 1)

    @property
    def network(self) -> TokenDecoder:
        """The decoder; before :meth:`learn` it knows nothing."""
        if not hasattr(self, "_network"):
            with seeded(derive_seed(self.shop.options.seed, "decoder")):
                self._network = TokenDecoder(self.view.geometry).to(self.shop.device).eval()
        return self._network


@torch.no_grad()
def decoded(network: TokenDecoder, tokens_MND: Tensor, device: torch.device) -> Tensor:
    """Images ``[M, 3, H, W]`` in [0, 1], batch by batch."""
    parts = [network(tokens.to(device)).cpu() for tokens in torch.split(tokens_MND, 64)]
    return to_unit(torch.cat(parts))
