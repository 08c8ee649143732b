# SPDX-License-Identifier: Apache-2.0
"""Attacker ``optimise``: descend on the pixels until the edge makes of them what was received.

White box, for any cut. Under a row permutation it alternates: assign the received tokens to those
of the image so far, then descend towards them.
"""

import torch
from torch import Tensor

from attacks.assignment import assign
from attacks.attacker import Attacker, Finding, Workshop
from attacks.columns import ColumnMatcher
from attacks.images import to_unit
from attacks.learning import split_auxiliary
from attacks.networks import Standardise
from attacks.ordering import in_edge_order
from attacks.simulation import simulate
from attacks.threat import KNOWN_EDGE
from attacks.view import View
from clients.augment import normalise
from split import derive_seed

__all__ = ["OptimiseAttacker"]

STEPS, RATE, SMOOTHNESS, ASSIGN_EVERY, BATCH = 300, 0.05, 2e-3, 20, 64


class OptimiseAttacker(Attacker):
    """Adam on the pixels from the mean auxiliary image, with total variation as the prior."""

    name = "optimise"
    threats = (KNOWN_EDGE,)
    learns = False

    def __init__(self, view: View, shop: Workshop) -> None:
        super().__init__(view, shop)
        rows = split_auxiliary(view.auxiliary, shop.options.seed).learn
        self.columns = ColumnMatcher(view, rows)
        self.start = normalise(view.auxiliary.images[rows]).mean(dim=0)
        self.standardise = Standardise(view.geometry.dim)
        seed = derive_seed(shop.options.seed, "optimise")
        self.standardise.measure(simulate(view, view.auxiliary.images[rows[:512]], seed))
        self.standardise.to(shop.device)

    def learn(self) -> None:
        """There is nothing to learn."""

    def attack(self) -> list[Finding]:
        smashed = self.columns.undone(self.view.smashed)
        found = [self._descend(part) for part in torch.split(smashed, BATCH)]
        images = torch.cat([images for images, _ in found])
        return [
            Finding(
                images=to_unit(images),
                places=torch.cat([places for _, places in found]),
            )
        ]

    def _descend(self, smashed_BND: Tensor) -> tuple[Tensor, Tensor]:
        device, steps = self.shop.device, self.shop.options.epochs or STEPS
        edge = self.view.edge.to(device)
        received = self.standardise(smashed_BND.to(device))
        pixels = self.start.to(device).repeat(len(smashed_BND), 1, 1, 1).requires_grad_()
        places = torch.arange(received.shape[1]).expand(received.shape[:2])
        optimiser = torch.optim.Adam([pixels], lr=RATE)
        for step in range(steps):
            self.shop.progress("optimise", step, steps)
            tokens = self.standardise(edge(pixels))
            if "row" in self.view.geometry.permute and step % ASSIGN_EVERY == 0:
                places = _nearest(received, tokens.detach())
            target = in_edge_order(received, places.to(device))
            loss = (tokens - target).square().mean() + SMOOTHNESS * _total_variation(pixels)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            for group in optimiser.param_groups:
                group["lr"] = RATE * (1 - step / steps)
        edge.to("cpu")
        return pixels.detach().cpu(), places


def _nearest(received_BND: Tensor, tokens_BND: Tensor) -> Tensor:
    """The assignment [B, N] of received tokens with the least squared distance."""
    return assign(torch.cdist(received_BND.double(), tokens_BND.double()).square())


def _total_variation(images_BCHW: Tensor) -> Tensor:
    across = (images_BCHW[..., 1:] - images_BCHW[..., :-1]).abs().mean()
    return across + (images_BCHW[..., 1:, :] - images_BCHW[..., :-1, :]).abs().mean()
