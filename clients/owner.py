# SPDX-License-Identifier: Apache-2.0
"""A data owner: its images, its secret, and the batches that follow from both.

Everything random about a batch is a function of (run seed, client, purpose, round, step); what
must stay secret (permutations, noise, shuffles) comes from the client's secret instead of the seed.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clients.augment import crop_and_flip, normalise
from clients.data import DataSpec, Shard, load_shard
from clients.defences import DefencePipeline, build_pipeline
from clients.order import evaluation_rows, training_rows
from clients.secrets import column_secret
from config import RunConfig
from equivariance import (
    Secret,
    permute_columns,
    permute_rows,
    row_orders,
    sample_column_order,
    unpermute_columns,
    unpermute_rows,
    with_prefix,
)
from split import Batch, ModelSpec, derive_seed
from split.model import shape_of


def data_spec(config: RunConfig) -> DataSpec:
    """The data that a run's configuration asks for."""
    return DataSpec(
        data=config.data,
        image_size=config.image_size,
        partition=config.partition,
        dirichlet_alpha=config.dirichlet_alpha,
        dirichlet_attribute=config.dirichlet_attribute,
        auxiliary=config.auxiliary,
        seed=config.seed,
        cache_dir=config.cache_dir,
    )


@dataclass(frozen=True, kw_only=True)
class Moment:
    """When a batch is: its purpose (``train`` or a split), its round (1 ..) and step (0 ..)."""

    purpose: str
    round: int
    step: int


@dataclass(frozen=True)
class Owner:
    """One client's data and secret.

    Parameters
    ----------
    config : RunConfig
    client, clients : int
        Partition id, and number of partitions.
    secret : Secret
    """

    config: RunConfig
    client: int
    clients: int
    secret: Secret = field(repr=False)

    def shard(self, split: str) -> Shard:
        """The client's images of a split."""
        return load_shard(
            data_spec(self.config),
            partition_id=self.client,
            num_partitions=self.clients,
            split=split,
        )

    def training_batch(self, moment: Moment, steps: int) -> Batch:
        """The batch of a training step; ``steps`` is the number of steps in each round."""
        shard = self.shard("train")
        rows = training_rows(
            len(shard),
            self.config.batch_size,
            (moment.round - 1) * steps + moment.step,
            seed=self.config.seed,
            client=self.client,
        )
        images = shard.images[rows]
        if self.config.augment == "paper":
            images = crop_and_flip(images, np.random.default_rng(self._seed("augment", moment)))
        return self.batch(images, shard.labels[rows], moment)

    def evaluation_batch(self, moment: Moment) -> Batch:
        """Evaluation batch ``moment.step`` of the split ``moment.purpose``, in order."""
        shard = self.shard(moment.purpose)
        rows = evaluation_rows(len(shard), self.config.evaluate_batch_size, moment.step)
        return self.batch(shard.images[rows], shard.labels[rows], moment)

    @cached_property
    def column_order(self) -> Tensor | None:
        """The column permutation ``[D]`` of the run, if it has one."""
        if "column" not in self.config.permute:
            return None
        vit = shape_of(ModelSpec.of(self.config))
        heads = vit.blocks[0].attn.num_heads
        return sample_column_order(column_secret(self.config), dim=vit.embed_dim, heads=heads)

    @cached_property
    def pipeline(self) -> DefencePipeline:
        """The defences, the same object for training and evaluation."""
        return build_pipeline(self.config)

    def batch(self, images: NDArray[np.uint8], labels: NDArray[np.uint8], moment: Moment) -> Batch:
        """Images ``[B, H, W, 3]`` with labels ``[B, K]`` as a batch of ``moment``.

        An attack has the client's own code process images of its choice by this.
        """
        rows, columns = self.row_orders(moment, len(images)), self.column_order

        def seeds(index: int) -> int:
            derived = self.secret.derive(
                "defence", moment.purpose, moment.round, moment.step, index
            )
            return int.from_bytes(derived.raw[:8], "little") >> 1

        def seal(tokens_BND: Tensor) -> Tensor:
            sealed = self.pipeline.on_tokens(tokens_BND, seeds)
            sealed = sealed if rows is None else permute_rows(sealed, rows)
            return sealed if columns is None else permute_columns(sealed, columns)

        def unseal(hidden: Tensor) -> Tensor:
            opened = hidden if columns is None else unpermute_columns(hidden, columns)
            pooled = hidden.ndim == 2
            return opened if rows is None or pooled else unpermute_rows(opened, rows)

        return Batch(
            images=self.pipeline.on_pixels(normalise(images), seeds),
            labels=torch.from_numpy(labels.astype(np.float32)),
            seal=seal,
            open=unseal,
            seed=self._seed("layers", moment),
        )

    def row_orders(self, moment: Moment, batch: int) -> Tensor | None:
        """The row permutation ``[B, N]`` of all tokens, prefix included, or None."""
        if "row" not in self.config.permute:
            return None
        grid, prefix = self.pipeline.grid, self.pipeline.prefix
        fixed = 0 if self.config.permute_cls else prefix
        orders = row_orders(
            self.secret,
            rotation=self.config.rotation,
            purpose=moment.purpose,
            round=moment.round,
            step=moment.step,
            batch=batch,
            tokens=grid[0] * grid[1] + prefix - fixed,
        )
        return with_prefix(orders, fixed)

    def _seed(self, use: str, moment: Moment) -> int:
        return derive_seed(
            self.config.seed, use, self.client, moment.purpose, moment.round, moment.step
        )
