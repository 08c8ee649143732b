# SPDX-License-Identifier: Apache-2.0
"""Which client owns which row: flwr-datasets' partitioners, run on row numbers only.

Every partition divides one split at a time. A new one is a function with the signature of
``Partition`` and a line in ``PARTITIONS``.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .errors import DataError
from .schema import ATTRIBUTES, SPLITS, TRAIN, Table

if TYPE_CHECKING:
    from .spec import DataSpec

__all__ = ["PARTITIONS", "UNOWNED", "assign_clients"]

UNOWNED = -1
DRAWS = 20

Rows = NDArray[np.int64]
Partition = Callable[[Table, "DataSpec", int], NDArray[np.int32]]


def assign_clients(table: Table, spec: "DataSpec", num_partitions: int) -> NDArray[np.int32]:
    """Give each row of train, validation and test to one client.

    Parameters
    ----------
    table : Table
        Rows whose auxiliary split is set aside.
    spec : DataSpec
        Names the partition, and holds its seed and options.
    num_partitions : int
        Number of clients.

    Returns
    -------
    NDArray[np.int32]
        A client from 0 to ``num_partitions`` - 1 for each row, ``UNOWNED`` for auxiliary rows. [N]

    Raises
    ------
    DataError
        If a client would have nothing to train on. An empty validation or test shard is allowed.
    """
    train = table.rows("train")
    if num_partitions > len(train):
        raise DataError(
            f"more clients than images: {num_partitions} clients, {len(train)} training images "
            f"in {spec.data} (auxiliary = {spec.auxiliary} is set aside)"
        )
    owners = PARTITIONS[spec.partition](table, spec, num_partitions)
    idle = np.setdiff1d(np.arange(num_partitions), owners[train])
    if len(idle):
        raise DataError(_idle_problem(table, spec, num_partitions, len(idle)))
    return owners


def _idle_problem(table: Table, spec: "DataSpec", num_partitions: int, idle: int) -> str:
    if spec.partition == "dirichlet":
        return (
            f"dirichlet-alpha = {spec.dirichlet_alpha}: too skewed for {num_partitions} clients, "
            f"{idle} of them got no training image in each of {DRAWS} draws; use a larger "
            f"alpha or fewer clients"
        )
    identities = len(np.unique(table.identity[table.rows("train")]))
    return (
        f"more clients than identities: {num_partitions} clients, {identities} training "
        f"identities; partition = {spec.partition!r} gives whole identities, use fewer clients "
        f"or partition = 'iid'"
    )


def _iid(table: Table, spec: "DataSpec", num_partitions: int) -> NDArray[np.int32]:
    """Shuffle each split and cut it into parts whose sizes differ by at most one."""
    from flwr_datasets.partitioner import IidPartitioner

    owners = np.full(len(table), UNOWNED, np.int32)
    for split in SPLITS[:3]:
        rows = np.random.default_rng([spec.seed, num_partitions]).permutation(table.rows(split))
        # With fewer images than clients the last ones get none, which flwr-datasets refuses.
        clients = max(min(num_partitions, len(rows)), 1)
        _fill(owners, IidPartitioner(clients), rows, range(clients))
    return owners


def _identity(table: Table, spec: "DataSpec", num_partitions: int) -> NDArray[np.int32]:
    """Give whole identities to clients, sizes as even as whole identities allow.

    ``GroupedNaturalIdPartitioner`` groups a fixed number of identities, which gives neither an
    exact number of clients nor even sizes; so identities are grouped here by their number of
    images, largest first to the smallest client, and it is given the finished groups.
    """
    from flwr_datasets.partitioner import GroupedNaturalIdPartitioner

    owners = np.full(len(table), UNOWNED, np.int32)
    for split in SPLITS[:3]:
        rows = table.rows(split)
        groups = _even_groups(table.identity[rows], num_partitions, spec.seed)
        partitioner = GroupedNaturalIdPartitioner("group", group_size=1, sort_unique_ids=True)
        # With fewer identities than clients the last groups are empty and unknown to flwr-datasets.
        _fill(owners, partitioner, rows, range(len(np.unique(groups))), group=groups)
    return owners


def _even_groups(identity: Rows, num_groups: int, seed: int) -> Rows:
    identities, member, counts = np.unique(identity, return_inverse=True, return_counts=True)
    order = np.random.default_rng([seed, num_groups]).permutation(len(identities))
    order = order[np.argsort(-counts[order], kind="stable")]
    group_of = np.empty(len(identities), np.int64)
    sizes = np.zeros(num_groups, np.int64)
    for position in order:
        group_of[position] = np.argmin(sizes)
        sizes[group_of[position]] += counts[position]
    return group_of[member]


def _dirichlet(table: Table, spec: "DataSpec", num_partitions: int) -> NDArray[np.int32]:
    """Skew one attribute: each of its two values is divided by its own Dirichlet draw.

    The draw is repeated until each client has a training image. The same draw divides the three
    splits, so that a client is evaluated on the mixture it trains on.
    """
    for draw in range(DRAWS):
        owners = np.full(len(table), UNOWNED, np.int32)
        _divide_by_attribute(owners, table, TRAIN, spec, num_partitions, draw)
        if len(np.unique(owners[owners != UNOWNED])) == num_partitions:
            break
    for code in range(TRAIN + 1, 3):
        _divide_by_attribute(owners, table, code, spec, num_partitions, draw)
    return owners


def _divide_by_attribute(
    owners: NDArray[np.int32],
    table: Table,
    code: int,
    spec: "DataSpec",
    num_partitions: int,
    draw: int,
) -> None:
    from flwr_datasets.partitioner import DirichletPartitioner

    rows = table.rows(SPLITS[code])
    clients = min(num_partitions, len(rows))
    if not clients:
        return
    partitioner = DirichletPartitioner(
        num_partitions=clients,
        partition_by="label",
        alpha=float(spec.dirichlet_alpha),
        min_partition_size=0,
        seed=int(np.random.SeedSequence([spec.seed, draw]).generate_state(1)[0]),
    )
    label = table.attributes[rows, ATTRIBUTES.index(spec.dirichlet_attribute)]
    _fill(owners, partitioner, rows, range(clients), label=label)


def _fill(
    owners: NDArray[np.int32], partitioner: Any, rows: Rows, clients: range, **columns: Any
) -> None:
    """Let a flwr-datasets partitioner divide the rows, and note each row's client in ``owners``."""
    from datasets import Dataset

    if len(rows) == 0:
        return
    # In the Arrow format a column is one array, else flwr-datasets reads it number by number.
    partitioner.dataset = Dataset.from_dict({"row": rows, **columns}).with_format("arrow")
    for client in clients:
        owners[np.asarray(partitioner.load_partition(client)["row"], np.int64)] = client


PARTITIONS: Mapping[str, Partition] = {
    "iid": _iid,
    "identity": _identity,
    "dirichlet": _dirichlet,
}
