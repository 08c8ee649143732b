# SPDX-License-Identifier: Apache-2.0
"""What must fit together among the keys of a run, beyond what each key says by itself."""

from collections.abc import Iterator

from config.fields import RunConfig
from config.problems import Problem


def permuted_cls(config: RunConfig) -> Iterator[Problem]:
    """Once CLS is permuted the trunk cannot tell it from a patch, so it must return all tokens."""
    if config.permute_cls and config.return_ == "pooled":
        yield Problem("permute-cls", True, 'needs return = "all"')
    if config.permute_cls and "row" not in config.permute:
        yield Problem("permute-cls", True, 'needs permute = "row" or "row+column"')


def key_folder(config: RunConfig) -> Iterator[Problem]:
    """Secrets in files need a folder; a column key must be the same for all clients."""
    if config.key_source == "file" and not config.key_dir:
        yield Problem("key-dir", "", 'key-source = "file" needs the folder of the key files')
    if config.key_source == "random" and "column" in config.permute:
        yield Problem(
            "key-source",
            "random",
            "the column key is shared by all clients, which fresh random secrets are not: "
            'use "file" (column.key in key-dir) or "seed"',
        )


def cosine_falls(config: RunConfig) -> Iterator[Problem]:
    """A cosine schedule ends no higher than it starts."""
    for key, start, end in (
        ("lr-client-end", config.lr_client, config.lr_client_end),
        ("lr-trunk-end", config.lr_trunk, config.lr_trunk_end),
    ):
        if end > start:
            yield Problem(key, end, f"must be at most the start, {start}")


def patches_fit(config: RunConfig) -> Iterator[Problem]:
    """Patches tile the image, heads tile the width, and the cut lies inside the stack."""
    if config.patch_size and config.image_size % config.patch_size:
        yield Problem(
            "patch-size", config.patch_size, f"must divide image-size = {config.image_size}"
        )
    if config.dim and config.heads and config.dim % config.heads:
        yield Problem("heads", config.heads, f"must divide dim = {config.dim}")
    if config.depth and config.cut >= config.depth:
        yield Problem(
            "cut", config.cut, f"must be 0 .. {config.depth - 1} (depth = {config.depth})"
        )


def resumed_run(config: RunConfig) -> Iterator[Problem]:
    """Only a named run can be resumed."""
    if config.resume and not config.run_name:
        yield Problem("resume", True, "needs run-name, the name of the run to continue")


RULES = (permuted_cls, key_folder, cosine_falls, patches_fit, resumed_run)
