# SPDX-License-Identifier: Apache-2.0
"""A finished run, set up to be attacked: victims, the truth about them, and what can be granted.

The victims are images of the test split. Their clients process them by the very code that trained
and evaluated the run (:class:`clients.owner.Owner`, with the run's defence pipeline), so smashed
data are exactly what was sent in the evaluation after the attacked round. Where a client's secret
is not derived from the seed, a fresh one stands for it: nobody but the client has it.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from attacks.errors import AttackError
from attacks.images import unit_images
from attacks.threat import Grant, ThreatModel
from attacks.view import Auxiliary, Geometry, View
from clients.data import DataError, load_auxiliary
from clients.owner import Moment, Owner, data_spec
from clients.secrets import client_secret
from config import RunConfig, parse_run_config
from equivariance import Secret
from reports import RunFolder
from reports.run_folder import CLIENT_WEIGHTS
from split import Batch, Edge, ModelSpec, build_split, decode, encode, smash
from split.model import shape_of

__all__ = ["ALL_CLIENTS", "LEAST_PEOPLE", "Scene", "Truth"]

ALL_CLIENTS = -1
LEAST_PEOPLE = 2
"""Auxiliary people that attackers need: some to learn from, others to judge what they learn."""

SPLIT = "test"


@dataclass(frozen=True)
class Truth:
    """The victims as only their clients know them.

    Parameters
    ----------
    images : Tensor
        [M, 3, H, W] in [0, 1].
    labels : Tensor
        [M, K] in {0, 1}.
    orders : Tensor
        [M, N]: received token i is token ``orders[:, i]`` of the edge.
    """

    images: Tensor
    labels: Tensor
    orders: Tensor


class Scene:
    """A run to attack, from its folder alone (and the images, where the run found them).

    Parameters
    ----------
    run : RunFolder
    images : int
        Number of victims at most.
    client : int, optional
        The victims' client; ``ALL_CLIENTS`` for all. By default all, except where a permutation
        lasts longer than a batch (rotation ``round`` or ``fixed``): there each client has its own,
        and the client with the most test images is the victim.

    Raises
    ------
    AttackError
        If the run has no checkpoint or no edge weights, or there are no auxiliary or test images.
    """

    def __init__(self, run: RunFolder, *, images: int = 256, client: int | None = None) -> None:
        self.run, self.config = run, run_config(run)
        self.folder = _checkpoint(run)
        self.round = int(self.folder.name.removeprefix("round-"))
        self.clients = _number_of_clients(run)
        self.edge = _edge(self.config, self.folder).eval().requires_grad_(False)
        self.client = self._victim_client(client)
        self.auxiliary = self._auxiliary()
        self.victims = images

    # -- for the attacker -----------------------------------------------------------------

    def view(self, threat: ThreatModel) -> View:
        """What an attacker under ``threat`` sees."""
        smashed, truth = self.traffic
        owner = self._owner(max(self.client, 0))
        granted: dict[Grant, object] = {
            Grant.AUXILIARY: self.auxiliary,
            Grant.QUERIES: self._query,
            Grant.EDGE: self.edge,
            Grant.DEFENCE: owner.pipeline,
            Grant.ORDERS: truth.orders,
        }
        return View(threat, self.geometry, smashed, granted)

    @cached_property
    def geometry(self) -> Geometry:
        """The architecture of the run."""
        vit = shape_of(ModelSpec.of(self.config))
        return Geometry(
            image_size=self.config.image_size,
            patch_size=vit.patch_embed.patch_size[0],
            prefix=vit.num_prefix_tokens,
            dim=vit.embed_dim,
            cut=self.config.cut,
            position=self.config.edge_position == "learned",
            outputs=self.auxiliary.labels.shape[1],
            permute=self.config.permute,
            permute_prefix="row" in self.config.permute and self.config.permute_cls,
        )

    # -- for the judge --------------------------------------------------------------------

    @property
    def truth(self) -> Truth:
        """The victims, to score what an attacker found."""
        return self.traffic[1]

    @cached_property
    def traffic(self) -> tuple[Tensor, Truth]:
        """The victims' smashed data as sent, [M, N, D], and the truth about them.

        Whole evaluation batches are processed, as some defences mix the images of a batch, and
        clients take turns; then the first ``images`` are kept.
        """
        found: list[tuple[Tensor, Truth]] = []
        count, index = 0, 0
        pending = [self._owner(c) for c in self._victim_clients()]
        while pending and count < self.victims:
            for owner in list(pending):
                rows = len(owner.shard(SPLIT)) - index * self.config.evaluate_batch_size
                if rows <= 0:
                    pending.remove(owner)
                elif count < self.victims:
                    found.append(self._evaluation(owner, index))
                    count += len(found[-1][0])
            index += 1
        smashed = torch.cat([tokens for tokens, _ in found])[: self.victims]
        images, labels, orders = (
            torch.cat([getattr(truth, name) for _, truth in found])[: self.victims]
            for name in ("images", "labels", "orders")
        )
        return smashed, Truth(images, labels, orders)

    # -- inside ---------------------------------------------------------------------------

    def _evaluation(self, owner: Owner, index: int) -> tuple[Tensor, Truth]:
        moment = Moment(purpose=SPLIT, round=self.round, step=index)
        batch = owner.evaluation_batch(moment)
        shard, size = owner.shard(SPLIT), self.config.evaluate_batch_size
        pixels = shard.images[index * size : (index + 1) * size]
        truth = Truth(unit_images(pixels), batch.labels, self._orders(owner, moment, len(pixels)))
        return self._sent(batch), truth

    def _orders(self, owner: Owner, moment: Moment, count: int) -> Tensor:
        orders = owner.row_orders(moment, count)
        return torch.arange(self.geometry.tokens).expand(count, -1) if orders is None else orders

    def _query(self, images: NDArray[np.uint8], index: int) -> Tensor:
        owner = self._owner(max(self.client, 0))
        labels = np.zeros((len(images), 1), np.uint8)
        moment = Moment(purpose="query", round=self.round, step=index)
        return self._sent(owner.batch(images, labels, moment))

    def _sent(self, batch: Batch) -> Tensor:
        return decode(encode(smash(self.edge, batch), self.config.wire_dtype))

    def _owner(self, client: int) -> Owner:
        if client not in self._owners:
            config, stand_in = self.config, Secret.from_seed(self.config.seed, "stand-in", client)
            derived = config.key_source == "seed"
            secret = client_secret(config, client) if derived else stand_in
            self._owners[client] = Owner(config, client, self.clients, secret)
        return self._owners[client]

    @cached_property
    def _owners(self) -> dict[int, Owner]:
        return {}

    def _victim_clients(self) -> list[int]:
        return list(range(self.clients)) if self.client == ALL_CLIENTS else [self.client]

    def _victim_client(self, client: int | None) -> int:
        sizes = [len(self._owner(c).shard(SPLIT)) for c in range(self.clients)]
        if client is None:
            lasting = "row" in self.config.permute and self.config.rotation in ("round", "fixed")
            client = int(np.argmax(sizes)) if lasting else ALL_CLIENTS
        if not ALL_CLIENTS <= client < self.clients:
            raise AttackError(f"client = {client}: must be 0 .. {self.clients - 1}, or -1 for all")
        if not (sum(sizes) if client == ALL_CLIENTS else sizes[client]):
            raise AttackError(f"client = {client}: it has no test images, so there are no victims")
        return client

    def _auxiliary(self) -> Auxiliary:
        try:
            shard = load_auxiliary(data_spec(self.config))
        except DataError as error:
            raise AttackError(f"data = {self.config.data!r}: {error}") from error
        if len(np.unique(shard.identities)) < LEAST_PEOPLE:
            raise AttackError(
                f"auxiliary = {self.config.auxiliary:g}: it leaves {len(shard)} images for "
                f"attackers, who need those of {LEAST_PEOPLE} people at least; train with more"
            )
        return Auxiliary(shard.images, shard.labels, shard.identities)


def run_config(run: RunFolder) -> RunConfig:
    """The configuration of a run, ready for rebuilding its clients."""
    config = parse_run_config(run.config())
    # A column key of key files belongs to the clients: a stand-in is drawn like any other.
    return (
        config
        if config.key_source == "seed"
        else config.model_copy(update={"key_source": "seed"} if "column" in config.permute else {})
    )


def _checkpoint(run: RunFolder) -> Path:
    folder = run.latest_checkpoint()
    if folder is None:
        raise AttackError(f"{run.path}: the run has no checkpoint, so there is nothing to attack")
    return folder


def _number_of_clients(run: RunFolder) -> int:
    clients = run.facts().get("clients")
    if not isinstance(clients, int) or clients < 1:
        raise AttackError(f"{run.facts_path}: clients = {clients!r}: must be a number of clients")
    return clients


def _edge(config: RunConfig, checkpoint: Path) -> Edge:
    """The edge that all clients had: averaged, or the first one if it was never trained."""
    edge = build_split(ModelSpec.of(config), config.cut).edge
    if config.client_weights == "private":
        raise AttackError(
            'client-weights = "private": each edge is on its client\'s disk only, and the run '
            'folder holds none; attacks take "averaged" or "frozen"'
        )
    if config.client_weights == "averaged":
        file = checkpoint / CLIENT_WEIGHTS
        if not file.is_file():
            raise AttackError(f"{file}: missing, so the checkpoint has no edge weights")
        try:
            weights = load_file(file)
            edge.load_state_dict(
                {k.removeprefix("edge/"): t for k, t in weights.items() if k.startswith("edge/")}
            )
        except (SafetensorError, RuntimeError) as error:
            raise AttackError(f"{file}: does not hold the run's edge: {error}") from error
    return edge
