# SPDX-License-Identifier: Apache-2.0
"""For attackers that know edge and defence: learning where tokens belong, and to decode in order.

They make their own training data, whose order they know. Shapes: M victims, N tokens, D features.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from attacks.assignment import assign
from attacks.attacker import Workshop
from attacks.decoder import SOLVED_ON, decoded
from attacks.images import mirrored
from attacks.learning import Recipe, fit, split_auxiliary
from attacks.networks import TokenDecoder, TokenPlacer
from attacks.simulation import simulate
from attacks.view import View
from clients.augment import normalise
from split import derive_seed
from split.seeds import seeded

__all__ = ["Ordering", "assigned", "in_edge_order"]

PLACING_EPOCHS, DECODING_EPOCHS = 20, 30


class Ordering:
    """Placers (one for each way of looking) and a decoder of ordered tokens.

    Parameters
    ----------
    view : View
        With the grants ``auxiliary``, ``edge`` and ``defence``.
    shop : Workshop
    ways : mapping of str to bool
        Names of placers, and whether each attends over the set of tokens.
    """

    def __init__(self, view: View, shop: Workshop, ways: dict[str, bool]) -> None:
        self.view, self.shop = view, shop
        seed, device = shop.options.seed, shop.device
        self.placers: dict[str, TokenPlacer] = {}
        for way, attend in ways.items():
            with seeded(derive_seed(seed, "placer", way)):
                self.placers[way] = TokenPlacer(view.geometry, attend=attend).to(device).eval()
        with seeded(derive_seed(seed, "ordered-decoder")):
            self.decoder = TokenDecoder(view.geometry).to(device).eval()
        self.fold = split_auxiliary(view.auxiliary, seed)
        self.held_out: dict[str, float] = dict.fromkeys(ways, float("inf"))

    def learn(self) -> None:
        """Train all of them."""
        epochs = self.shop.options.epochs
        start = self.view.auxiliary.images[self.fold.learn[:SOLVED_ON]]
        tokens = self.tokens(start, -1)
        for way, placer in self.placers.items():
            placer.standardise.measure(tokens)
            recipe = Recipe(epochs=epochs or PLACING_EPOCHS)

            def placing(
                rows: NDArray[np.int64], index: int, placer: TokenPlacer = placer
            ) -> Tensor:
                return _placing_loss(placer, self.tokens(self._batch(rows, index), index))

            self.held_out[way] = fit(way, placer, placing, self.fold, recipe, self.shop)
        self.decoder.solve(tokens, normalise(start).to(self.shop.device))
        recipe = Recipe(epochs=epochs or DECODING_EPOCHS)
        fit("decoder", self.decoder, self._decoding_loss, self.fold, recipe, self.shop)

    @torch.no_grad()
    def place_logits(self, way: str, tokens_MND: Tensor) -> Tensor:
        """Logits [M, N, N] of each received token over all places."""
        placer, device = self.placers[way], self.shop.device
        parts = torch.split(tokens_MND, 64)
        return torch.cat([placer(tokens.to(device)).cpu() for tokens in parts])

    def decoded(self, tokens_MND: Tensor, places_MN: Tensor) -> Tensor:
        """Images [M, 3, H, W] in [0, 1] of tokens put at ``places``."""
        return decoded(self.decoder, in_edge_order(tokens_MND, places_MN), self.shop.device)

    def tokens(self, images: NDArray[np.uint8], index: int) -> Tensor:
        """Tokens [B, N, D] that the attacker makes of auxiliary images, in edge order."""
        seed = derive_seed(self.shop.options.seed, "simulate", index)
        return simulate(self.view, images, seed).to(self.shop.device)

    def _decoding_loss(self, rows: NDArray[np.int64], index: int) -> Tensor:
        batch = self._batch(rows, index)
        target = normalise(batch).to(self.shop.device)
        return functional.mse_loss(self.decoder(self.tokens(batch, index)), target)

    def _batch(self, rows: NDArray[np.int64], index: int) -> NDArray[np.uint8]:
        seed = derive_seed(self.shop.options.seed, "ordering", index)
        return mirrored(self.view.auxiliary.images[rows], seed)


def _placing_loss(placer: TokenPlacer, tokens_BND: Tensor) -> Tensor:
    logits = placer(tokens_BND)
    truth = torch.arange(logits.shape[1], device=logits.device).expand(len(logits), -1)
    return functional.cross_entropy(logits.flatten(0, 1), truth.flatten())


def assigned(logits_MNN: Tensor) -> Tensor:
    """The likeliest one-to-one places [M, N] (Hungarian assignment of each sample)."""
    return assign(-logits_MNN.log_softmax(dim=-1))


def in_edge_order(tokens_MND: Tensor, places_MN: Tensor) -> Tensor:
    """Tokens put at the places they are taken for."""
    index = places_MN.unsqueeze(-1).expand_as(tokens_MND)
    return torch.empty_like(tokens_MND).scatter_(1, index, tokens_MND)
