# SPDX-License-Identifier: Apache-2.0
"""A data owner's images: read from a source, divided into splits and clients, decoded once.

``load_shard`` is what a client calls; ``load_auxiliary`` gives the attacker's images;
``check_source`` finds every problem of the data before anything is trained.
"""

from .check import SourceSummary, check_source
from .errors import DataError
from .partition import PARTITIONS
from .schema import ATTRIBUTES, SPLITS
from .shard import Shard, load_auxiliary, load_dataset, load_shard
from .sources import SOURCES
from .spec import DataSpec

__all__ = [
    "ATTRIBUTES",
    "PARTITIONS",
    "SOURCES",
    "SPLITS",
    "DataError",
    "DataSpec",
    "Shard",
    "SourceSummary",
    "check_source",
    "load_auxiliary",
    "load_dataset",
    "load_shard",
]
