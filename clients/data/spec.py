# SPDX-License-Identifier: Apache-2.0
"""What data a run asks for."""

import os
from dataclasses import dataclass
from pathlib import Path

from .errors import did_you_mean
from .partition import PARTITIONS
from .schema import ATTRIBUTES
from .sources import SOURCES, Source

__all__ = ["DataSpec", "spec_problems"]


@dataclass(frozen=True, kw_only=True)
class DataSpec:
    """The data of a run; equal specs give equal shards on every machine.

    Parameters
    ----------
    data : str
        ``synthetic:N``, ``celeba:/path`` or ``hf:NAME``.
    image_size : int
        Side of the square images in pixels, after cropping and resizing.
    partition : str
        How a split is divided among clients: a key of ``PARTITIONS``.
    dirichlet_alpha : float
        Concentration of ``dirichlet``; small is skewed. Above 0.
    dirichlet_attribute : str
        The attribute that ``dirichlet`` skews.
    auxiliary : float
        Share of the training identities set aside for the attacker. 0 to 0.9.
    seed : int
        Draws the auxiliary identities and the partition; the images do not depend on it.
    cache_dir : str
        Folder of decoded images and tables; "" is the user's cache folder
        (``$XDG_CACHE_HOME/permsplit``, else ``~/.cache/permsplit``).
    """

    data: str
    image_size: int
    partition: str = "iid"
    dirichlet_alpha: float = 0.5
    dirichlet_attribute: str = "Male"
    auxiliary: float = 0.2
    seed: int = 0
    cache_dir: str = ""

    @property
    def cache_path(self) -> Path:
        """The cache folder, which need not exist."""
        if self.cache_dir:
            return Path(self.cache_dir).expanduser()
        return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "permsplit"


def spec_problems(spec: DataSpec, num_partitions: int | None = None) -> list[str]:
    """Return what is wrong with the numbers and names asked for, source aside."""
    problems = []
    source = SOURCES.get(spec.data.partition(":")[0], Source)
    smallest, largest = source.sizes
    if not smallest <= spec.image_size <= largest:
        problems.append(
            f"image-size = {spec.image_size}: must be {smallest} to {largest} pixels "
            f"for data = {spec.data!r}"
        )
    if spec.partition not in PARTITIONS:
        hint = did_you_mean(spec.partition, tuple(PARTITIONS))
        problems.append(f"partition = {spec.partition!r}: unknown; {hint}")
    if not spec.dirichlet_alpha > 0:
        problems.append(f"dirichlet-alpha = {spec.dirichlet_alpha}: must be above 0")
    if spec.dirichlet_attribute not in ATTRIBUTES:
        hint = did_you_mean(spec.dirichlet_attribute, ATTRIBUTES)
        problems.append(
            f"dirichlet-attribute = {spec.dirichlet_attribute!r}: not a CelebA attribute; {hint}"
        )
    if not 0 <= spec.auxiliary <= 0.9:
        problems.append(f"auxiliary = {spec.auxiliary}: must be a share from 0 to 0.9")
    if spec.seed < 0:
        problems.append(f"seed = {spec.seed}: must be 0 or more")
    if num_partitions is not None and num_partitions < 1:
        problems.append(f"number of clients = {num_partitions}: must be 1 or more")
    return problems
