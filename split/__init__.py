# SPDX-License-Identifier: Apache-2.0
"""One Transformer as edge | trunk | tail, the moves of a training step, and the wire codec."""

from split.average import weighted_mean
from split.model import ModelError, ModelSpec, build_vit, check_model
from split.moves import Batch, Finished, absorb, finish, predict, smash
from split.optimise import OptimiserSpec, learning_rate
from split.parts import Edge, SplitTransformer, Tail, Trunk, build_split, cut_vit, empty_split
from split.seeds import derive_seed, derived_generator, seeded
from split.trunk_step import RefusedTensor, TrunkSpec, TrunkStep
from split.wire import WireTensor, decode, encode

__all__ = [
    "Batch",
    "Edge",
    "Finished",
    "ModelError",
    "ModelSpec",
    "OptimiserSpec",
    "RefusedTensor",
    "SplitTransformer",
    "Tail",
    "Trunk",
    "TrunkSpec",
    "TrunkStep",
    "WireTensor",
    "absorb",
    "build_split",
    "build_vit",
    "check_model",
    "cut_vit",
    "decode",
    "derive_seed",
    "derived_generator",
    "empty_split",
    "encode",
    "finish",
    "learning_rate",
    "predict",
    "seeded",
    "smash",
    "weighted_mean",
]
