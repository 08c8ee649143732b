# SPDX-License-Identifier: Apache-2.0
"""The typed configuration of a run: every key, its type, its default and what it means."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Permute = Literal["none", "row", "column", "row+column"]
Rotation = Literal["sample", "batch", "round", "fixed"]


def _kebab(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


class RunConfig(BaseModel):
    """One run, validated once and frozen. Attribute ``image_size`` is the key ``image-size``.

    Build it with :func:`config.parse_run_config`, which reports every problem at once; the
    defaults here are those of the preset ``smoke`` and of ``[tool.flwr.app.config]``.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        alias_generator=_kebab,
        populate_by_name=False,
    )

    # -- data -----------------------------------------------------------------------------
    data: Annotated[
        str, Field(description="Where images come from: synthetic:N, celeba:/path or hf:NAME.")
    ] = "synthetic:2400"
    image_size: Annotated[
        int, Field(ge=8, le=1024, description="Side of the square images, in pixels.")
    ] = 32
    partition: Annotated[
        Literal["iid", "identity", "dirichlet"],
        Field(description="How images are spread over clients."),
    ] = "identity"
    dirichlet_alpha: Annotated[
        float, Field(gt=0, description="Concentration for partition = dirichlet; small is skewed.")
    ] = 0.5
    dirichlet_attribute: Annotated[
        str, Field(description="Attribute whose share is skewed for partition = dirichlet.")
    ] = "Male"
    auxiliary: Annotated[
        float,
        Field(ge=0, le=0.9, description="Share of training identities kept for attackers only."),
    ] = 0.1
    augment: Annotated[
        Literal["none", "paper"],
        Field(description="paper: random crop with padding of 1/8 of the side, and flip."),
    ] = "none"
    cache_dir: Annotated[
        str, Field(description="Folder of decoded images; empty: the user's cache folder.")
    ] = ""

    # -- model ----------------------------------------------------------------------------
    model: Annotated[str, Field(description="Name of a timm VisionTransformer.")] = (
        "vit_tiny_patch16_224"
    )
    patch_size: Annotated[
        int, Field(ge=0, description="Side of a patch in pixels; 0: the model's own.")
    ] = 8
    dim: Annotated[int, Field(ge=0, description="Width of a token; 0: the model's own.")] = 128
    depth: Annotated[int, Field(ge=0, description="Number of blocks; 0: the model's own.")] = 2
    heads: Annotated[int, Field(ge=0, description="Attention heads; 0: the model's own.")] = 4
    weights: Annotated[
        str,
        Field(description="Empty: random from seed; hub: timm's pretrained; or a local file."),
    ] = ""
    cut: Annotated[
        int, Field(ge=0, description="Number of blocks in the edge: 0 .. depth - 1.")
    ] = 0
    pool: Annotated[Literal["cls", "mean"], Field(description="What the tail classifies.")] = "cls"
    edge_position: Annotated[
        Literal["learned", "none"], Field(description="Position embedding added on the edge.")
    ] = "learned"
    drop_path: Annotated[
        float, Field(ge=0, lt=1, description="Stochastic depth rate of the last block.")
    ] = 0.0

    # -- privacy --------------------------------------------------------------------------
    permute: Annotated[Permute, Field(description="Which permutations the client applies.")] = "row"
    rotation: Annotated[Rotation, Field(description="How long one row permutation is used.")] = (
        "sample"
    )
    permute_cls: Annotated[
        bool, Field(description="Permute CLS and registers with the patches (needs return = all).")
    ] = False
    return_: Annotated[
        Literal["pooled", "all"], Field(description="What the trunk sends back.")
    ] = "pooled"
    key_source: Annotated[
        Literal["seed", "random", "file"],
        Field(description="Where a client's secret comes from; seed is for simulation only."),
    ] = "seed"
    key_dir: Annotated[
        str, Field(description="Folder of client-NNN.key (and column.key) for key-source = file.")
    ] = ""
    defences: Annotated[
        str, Field(description="Comma list in order of use, such as lp:0.05,gn:0.5; empty: none.")
    ] = ""
    defence_point: Annotated[
        Literal["pixels", "embedding"], Field(description="What the defences act on.")
    ] = "pixels"

    # -- training -------------------------------------------------------------------------
    schedule: Annotated[
        str, Field(description="sequential, parallel, splitfed-v1 or splitfed-v2.")
    ] = "parallel"
    transport: Annotated[Literal["message", "ray"], Field(description="How tensors travel.")] = (
        "message"
    )
    wire_dtype: Annotated[
        Literal["fp32", "fp16"], Field(description="Number format on the wire.")
    ] = "fp32"
    client_weights: Annotated[
        Literal["averaged", "private", "frozen"],
        Field(description="What becomes of edge and tail."),
    ] = "averaged"
    rounds: Annotated[int, Field(ge=1, description="Number of rounds.")] = 8
    steps_per_round: Annotated[
        int,
        Field(ge=0, description="Steps of each client in a round; 0: one pass over all images."),
    ] = 0
    batch_size: Annotated[int, Field(ge=1, description="Images of one client in a step.")] = 16
    evaluate_batch_size: Annotated[
        int, Field(ge=1, description="Images of one client in an evaluation step.")
    ] = 128
    evaluate_every: Annotated[
        int, Field(ge=0, description="Rounds between evaluations; 0: only after the last.")
    ] = 2
    optimizer: Annotated[
        Literal["sgd", "adamw"], Field(description="Optimiser of all three parts.")
    ] = "adamw"
    lr_client: Annotated[
        float, Field(gt=0, description="Learning rate of edge and tail at the start.")
    ] = 1e-3
    lr_client_end: Annotated[
        float, Field(ge=0, description="The same at the end of the cosine.")
    ] = 1e-5
    lr_trunk: Annotated[
        float, Field(gt=0, description="Learning rate of the blocks at the start.")
    ] = 1e-3
    lr_trunk_end: Annotated[
        float, Field(ge=0, description="The same at the end of the cosine.")
    ] = 1e-5
    momentum: Annotated[float, Field(ge=0, lt=1, description="Momentum of sgd.")] = 0.9
    weight_decay: Annotated[
        float, Field(ge=0, description="Weight decay: L2 in sgd, decoupled in adamw.")
    ] = 0.05
    seed: Annotated[int, Field(ge=0, lt=2**63, description="All randomness derives from it.")] = 0

    # -- federation -----------------------------------------------------------------------
    min_clients: Annotated[
        int, Field(ge=1, description="Fewer clients than this in a round end the run.")
    ] = 2
    client_fraction: Annotated[
        float, Field(gt=0, le=1, description="Share of clients sampled for a round.")
    ] = 1.0
    step_timeout: Annotated[
        float, Field(gt=0, description="Seconds to wait for a client's reply to a step.")
    ] = 300.0
    start_timeout: Annotated[
        float, Field(gt=0, description="Seconds to wait for clients and Ray at the start.")
    ] = 120.0
    trunk_gpus: Annotated[float, Field(ge=0, description="GPUs of the trunk actor; 0: CPU.")] = 0.0
    trunk_threads: Annotated[
        int, Field(ge=0, description="CPU threads of the trunk; 0: all cores.")
    ] = 0
    trunk_amp: Annotated[
        bool, Field(description="Run the trunk in bfloat16 autocast; faster, no longer exact.")
    ] = False

    # -- results --------------------------------------------------------------------------
    runs_dir: Annotated[
        str, Field(min_length=1, description="Folder of all runs (absolute is safest).")
    ] = "runs"
    run_name: Annotated[
        str,
        Field(
            pattern=r"^[A-Za-z0-9._-]*$",
            description="Name of this run's folder; empty: made from the time.",
        ),
    ] = ""
    state_dir: Annotated[
        str, Field(min_length=1, description="Folder of the clients' own states, on their disk.")
    ] = "client-state"
    resume: Annotated[
        bool, Field(description="Continue the run named run-name from its last checkpoint.")
    ] = False
    record_traffic: Annotated[
        int, Field(ge=0, description="Steps of the last round whose smashed data are kept.")
    ] = 0
    attack: Annotated[
        str, Field(description="Comma list of attackers to run after training; empty: none.")
    ] = ""
    attack_images: Annotated[
        int, Field(ge=1, description="Victims of an attack: images of the test split, at most.")
    ] = 256
    attack_epochs: Annotated[
        int, Field(ge=0, description="Epochs of attackers that learn; 0: each attacker's own.")
    ] = 0
    attack_face: Annotated[
        str,
        Field(
            description="Network of F-SIM: an ONNX file, or timm:NAME where there is no face "
            "network; empty: no F-SIM."
        ),
    ] = ""
    attack_metrics: Annotated[
        str,
        Field(
            description="Comma list of what reconstructions are scored by: ssim, psnr, ssim_paper, "
            "psnr_paper, lpips."
        ),
    ] = "ssim,psnr,ssim_paper,psnr_paper"


ATTACK_KEYS = ("attack", "attack-images", "attack-epochs", "attack-face", "attack-metrics")
"""Keys of what happens after training."""

RESUME_KEYS = (
    *("resume", "cache-dir", "key-dir", "min-clients", "step-timeout", "start-timeout"),
    *("trunk-gpus", "trunk-threads", "runs-dir", "state-dir", *ATTACK_KEYS),
)
"""Keys that a resumed run may change: they leave the numbers of its training as they are."""


def keys() -> tuple[str, ...]:
    """All keys of a run as they are written in TOML, in the order of their declaration."""
    return tuple(_kebab(name) for name in RunConfig.model_fields)
