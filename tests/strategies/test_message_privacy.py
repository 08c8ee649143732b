# SPDX-License-Identifier: Apache-2.0
"""All messages of a run: they hold what the protocol lists, and nothing that must stay private.

A watcher knows every secret, permutation, label and pixel of the run and looks for them in the
bytes of each message as sent, and in its lists. Planted leaks show that it sees.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch
from federation import Federation, LocalGrid, federate, tiny_config
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from flwr.common.serde import recorddict_to_proto
from torch import Tensor

import clients.owner
from clients.augment import normalise
from clients.owner import Owner
from clients.secrets import client_secret, column_secret
from equivariance import Secret, invert
from server_app.run import _first_start
from strategies import call_roll

DTYPES = ("uint8", "int16", "int32", "int64", "float16", "float32", "float64")
CLIENTS = 2


@dataclass
class Watcher:
    """Knows private bytes and private lists, each with what it is."""

    needles: dict[bytes, str] = field(default_factory=dict)
    lists: dict[tuple[int, ...], str] = field(default_factory=dict)

    def know_secret(self, secret: Secret) -> None:
        self.needles[secret.raw] = "secret"
        self.needles[secret.hex().encode()] = "secret"

    def know_order(self, order: Tensor, what: str) -> None:
        """A permutation and its inverse, with and without the places of a prefix."""
        for one in (order, invert(order)):
            for numbers in (one.numpy(), one.numpy() + 1):
                self.know_numbers(numbers, what)

    def know_numbers(self, numbers: np.ndarray, what: str) -> None:
        self.needles |= {numbers.astype(dtype).tobytes(): what for dtype in DTYPES}
        self.lists[tuple(int(number) for number in numbers)] = what

    def know_images(self, owner: Owner, split: str) -> None:
        shard = owner.shard(split)
        for row in np.unique(shard.labels, axis=0):
            self.know_numbers(row, "label")
        for image, normal in zip(shard.images, normalise(shard.images).numpy(), strict=True):
            for line in range(3, 14, 5):
                # A plain background says nothing.
                if len(np.unique(image[line], axis=0)) > 3:
                    self.needles[image[line].tobytes()] = "pixel"
                    self.needles[image[line, :, 0].tobytes()] = "pixel"
                    self.needles[normal[0, line].tobytes()] = "pixel"
                    self.needles[normal[:, line].T.tobytes()] = "pixel"

    def catch(self, contents: Iterable[RecordDict]) -> set[str]:
        """What private things are in any of these messages."""
        contents = list(contents)
        sent = b"".join(recorddict_to_proto(one).SerializeToString() for one in contents)
        caught = {what for needle, what in self.needles.items() if needle in sent}
        for content in contents:
            for records in (content.config_records, content.metric_records):
                for record in records.values():
                    for value in record.values():
                        if isinstance(value, list):
                            caught |= self._within(value)
        return caught

    def _within(self, value: list[object]) -> set[str]:
        spans = {len(known) for known in self.lists}
        return {
            self.lists[piece]
            for span in spans
            for start in range(len(value) - span + 1)
            if (piece := tuple(value[start : start + span])) in self.lists  # type: ignore[arg-type]
        }


@dataclass
class Watched:
    """A finished run with a watcher that knows all about it."""

    run: Federation
    watcher: Watcher
    orders: list[Tensor]
    column: Tensor | None

    @property
    def traffic(self) -> list[tuple[int, str, RecordDict]]:
        return self.run.grid.traffic


@pytest.fixture(scope="module", params=["row", "row+column"])
def watched(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Watched:
    """Two rounds of two clients with defences and averaging, evaluated each round."""
    orders: list[Tensor] = []
    draw = clients.owner.row_orders

    def recorded(*arguments: object, **keys: object) -> Tensor:
        drawn = draw(*arguments, **keys)  # type: ignore[arg-type]
        orders.extend(drawn.clone())
        return drawn

    config = tiny_config(
        tmp_path_factory.mktemp("watched"), permute=request.param, defences="lp:0.4,gn:0.05",
        defence_point="embedding", schedule="parallel", augment="none", data="synthetic:120",
        batch_size=3, evaluate_batch_size=5, evaluate_every=1,
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clients.owner, "row_orders", recorded)
        weights = None
        early: list[tuple[int, str, RecordDict]] = []
        if "column" in config.permute:
            grid = LocalGrid(config, CLIENTS)
            weights = _first_start(grid, config, call_roll(grid, config)).weights
            early = grid.traffic
        run = federate(config, CLIENTS, weights=weights).train()
        run.grid.traffic[:0] = early

    watcher, column = Watcher(), None
    for client in range(CLIENTS):
        owner = Owner(config, client, CLIENTS, client_secret(config, client))
        watcher.know_secret(owner.secret)
        for split in ("train", "validation", "test"):
            watcher.know_images(owner, split)
        column = owner.column_order
    for order in orders:
        watcher.know_order(order, "row permutation")
    if column is not None:
        watcher.know_secret(column_secret(config))
        watcher.know_order(column, "column permutation")
    return Watched(run, watcher, orders, column)


def test_nothing_private_is_in_any_message(watched: Watched) -> None:
    assert len(watched.traffic) > 50
    assert len(watched.orders) > 2 * 2 * 2 * 3
    assert watched.watcher.catch(content for _, _, content in watched.traffic) == set()


def label_of(watched: Watched) -> np.ndarray:
    config = watched.run.config
    labels = Owner(config, 1, CLIENTS, client_secret(config, 1)).shard("train").labels
    return np.asarray(labels[2])


def pixels_of(watched: Watched) -> np.ndarray:
    config = watched.run.config
    images = Owner(config, 0, CLIENTS, client_secret(config, 0)).shard("train").images
    return np.ascontiguousarray(images[:2])


def array(values: np.ndarray) -> RecordDict:
    return RecordDict({"wire": ArrayRecord({"payload": Array(np.ascontiguousarray(values))})})


def metric(values: Iterable[int]) -> RecordDict:
    return RecordDict({"metrics": MetricRecord({"counts": [0, *(int(v) for v in values), 9]})})


LEAKS: dict[str, tuple[str, Callable[[Watched], RecordDict]]] = {
    "secret-hex": (
        "secret",
        lambda w: RecordDict(
            {"config": ConfigRecord({"x": "k=" + client_secret(w.run.config, 1).hex()})}
        ),
    ),
    "secret-raw": (
        "secret",
        lambda w: RecordDict(
            {"config": ConfigRecord({"x": b"?" + client_secret(w.run.config, 0).raw})}
        ),
    ),
    "order-int64": ("row permutation", lambda w: array(torch.stack(w.orders[4:6]).numpy())),
    "order-uint8": ("row permutation", lambda w: array(w.orders[-1].numpy().astype("uint8"))),
    "inverse-int32": ("row permutation", lambda w: array(invert(w.orders[9]).int().numpy())),
    "order-with-cls": (
        "row permutation",
        lambda w: array(np.concatenate([[0], w.orders[0].numpy() + 1]).astype("float32")),
    ),
    "order-list": ("row permutation", lambda w: metric(w.orders[3].tolist())),
    "labels-uint8": ("label", lambda w: array(label_of(w))),
    "labels-float": ("label", lambda w: array(label_of(w)[None].astype("float32"))),
    "labels-list": ("label", lambda w: metric(label_of(w))),
    "pixels-uint8": ("pixel", lambda w: array(pixels_of(w))),
    "pixels-float": ("pixel", lambda w: array(normalise(pixels_of(w)).numpy())),
    "pixels-channels-last": (
        "pixel",
        lambda w: array(normalise(pixels_of(w)).permute(0, 2, 3, 1).numpy()),
    ),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_the_watcher_sees_a_planted_leak(watched: Watched, leak: str) -> None:
    what, plant = LEAKS[leak]
    contents = [content for _, _, content in watched.traffic]
    assert what in watched.watcher.catch([*contents[:5], plant(watched), *contents[5:9]])


def test_the_watcher_sees_a_planted_column_permutation(watched: Watched) -> None:
    if watched.column is None:
        assert "column" not in watched.run.config.permute
        return
    for planted in (array(watched.column.numpy()), metric(invert(watched.column).tolist())):
        assert watched.watcher.catch([planted]) == {"column permutation"}


STAMPS = {"received-at", "replied-at"}
SENT = {"images", "scale", *STAMPS}
OPENING = {"round", "step", "steps", "run", "restore", "actor"}
TOTALS = {"images", "loss", "positives", "true-positives", "true-negatives", *STAMPS}
WHITELIST: dict[str, list[dict[str, set[str]]]] = {
    "down query.describe": [{"config": {"ask"}}],
    "up query.describe": [
        {"metrics": {"partition-id", "num-partitions", "train", "validation", "test"}}
    ],
    "down query.lock": [{"config": {"ask"}}],
    "up query.lock": [{"weights": {"TRUNK"}}],
    "down train.smash": [{"config": OPENING}, {"config": OPENING, "weights": {"CLIENT"}}],
    "up train.smash": [{"wire": {"payload"}, "metrics": SENT}],
    "down train.finish": [
        {"config": {"round", "step", "steps", "progress", "scale"}, "wire": {"payload"}}
    ],
    "up train.finish": [{"wire": {"payload"}, "metrics": {"loss", *SENT}}],
    "down train.absorb": [
        {
            "config": {"round", "step", "steps", "progress", "last", "run", "scale"},
            "wire": {"payload"},
        }
    ],
    "up train.absorb": [
        {"wire": {"payload"}, "metrics": SENT},
        {"weights": {"CLIENT"}, "metrics": {"num-examples", *STAMPS}},
    ],
    "down evaluate.smash": [{"config": {*OPENING, "split"}, "weights": {"CLIENT"}}],
    "up evaluate.smash": [{"wire": {"payload"}, "metrics": SENT}],
    "down evaluate.finish": [
        {"config": {"round", "step", "steps", "split", "last", "scale"}, "wire": {"payload"}}
    ],
    "up evaluate.finish": [{"wire": {"payload"}, "metrics": SENT}, {"metrics": TOTALS}],
}


def test_messages_hold_what_the_protocol_lists_and_no_more(watched: Watched) -> None:
    trunk = set(watched.run.trunk.step.state()[0])
    client = set(watched.run.strategy.state.weights)
    assert client
    assert all(name.startswith(("edge/", "tail/")) for name in client)
    seen: dict[str, list[int]] = {}
    for _, leg, content in watched.traffic:
        keys: dict[str, set[str]] = {}
        for name, record in content.items():
            keys[name] = set(record)
            if keys[name] == client:
                keys[name] = {"CLIENT"}
            elif keys[name] == trunk:
                keys[name] = {"TRUNK"}
        assert keys in WHITELIST[leg], (leg, keys)
        seen.setdefault(leg, []).append(WHITELIST[leg].index(keys))
    # Every form that the list allows did occur.
    expected = {leg: set(range(len(forms))) for leg, forms in WHITELIST.items()}
    if watched.column is None:
        del expected["down query.lock"], expected["up query.lock"]
    assert {leg: set(forms) for leg, forms in seen.items()} == expected


def test_payloads_have_the_shapes_of_the_protocol(watched: Watched) -> None:
    smashed, pooled = (17, 16), (16,)
    for _, leg, content in watched.traffic:
        if "wire" in content.array_records:
            payload = content.array_records["wire"]["payload"].numpy()
            token_legs = ("up train.smash", "up train.absorb", "down train.absorb", "up evaluate")
            assert payload.shape[1:] == (smashed if leg.startswith(token_legs) else pooled), leg
            assert payload.dtype == np.float32


def test_an_error_reply_shows_no_secret(tmp_path: Path) -> None:
    def dead(client: int, message: object) -> str | None:
        kind = message.metadata.message_type  # type: ignore[attr-defined]
        return "dead" if (client, kind) == (1, "train.finish") else None

    config = tiny_config(tmp_path, schedule="parallel", permute="row", rounds=1, batch_size=2)
    run = federate(config, CLIENTS, sabotage=dead).train()
    assert "Traceback" in run.witness.warnings[0]
    secret = client_secret(config, 1)
    assert secret.hex() not in run.witness.warnings[0]
    assert str(secret.raw) not in run.witness.warnings[0]
