# SPDX-License-Identifier: Apache-2.0
"""Messages: what is composed is read back, also through Flower's own bytes."""

import numpy as np
import pytest
import torch
from flwr.app import RecordDict
from flwr.common.serde import recorddict_from_proto, recorddict_to_proto

from clients.protocol import (
    WEIGHTS,
    WIRE,
    Action,
    compose,
    config_of,
    metrics_of,
    payload_bytes,
    weights_of,
    wire_of,
)
from split import WireTensor, decode, encode


def travel(content: RecordDict) -> RecordDict:
    """As it arrives at the other side."""
    return recorddict_from_proto(recorddict_to_proto(content))


@pytest.mark.parametrize("dtype", ["fp32", "fp16"])
@pytest.mark.parametrize("upwards", [True, False])
def test_a_wire_tensor_survives_with_its_scale(dtype: str, upwards: bool) -> None:
    tensor = 1e-9 * torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    wire = encode(tensor, dtype)  # type: ignore[arg-type]
    fields = {"round": 3, "last": True, "run": "a", "progress": 0.5}
    if upwards:
        content = travel(compose(wire=wire, metrics={"images": 2, "positives": [1, 0]}))
        assert metrics_of(content)["images"] == 2
        assert list(metrics_of(content)["positives"]) == [1, 0]
    else:
        content = travel(compose(wire=wire, config=fields))
        told = config_of(content)
        assert {name: told[name] for name in fields} == fields
    received = wire_of(content)
    assert received.payload.dtype == wire.payload.dtype
    assert np.array_equal(received.payload, wire.payload)
    assert torch.equal(decode(received), decode(wire))
    assert payload_bytes(content, WIRE) == wire.nbytes == wire.payload.nbytes
    assert payload_bytes(content, WEIGHTS) == 0


def test_a_wire_tensor_alone_brings_its_scale_as_a_metric() -> None:
    content = travel(compose(wire=WireTensor(np.ones((1, 2), np.float16), 0.25)))
    assert decode(wire_of(content)).tolist() == [[0.25, 0.25]]


def test_weights_survive_whatever_their_layout() -> None:
    weights = {
        "edge/w": torch.arange(6.0).view(2, 3).T,
        "tail/empty": torch.zeros(0, 2),
        "edge/step": torch.tensor(4.0),
    }
    content = travel(compose(weights=weights))
    received = weights_of(content)
    assert received is not None
    assert received.keys() == weights.keys()
    assert all(torch.equal(received[name], tensor) for name, tensor in weights.items())
    assert payload_bytes(content, WEIGHTS) == 4 * 7
    assert weights_of(compose(config={"ask": "who"})) is None


def test_only_what_is_given_is_in_the_message() -> None:
    assert list(compose()) == []
    assert set(compose(config={"a": 1})) == {"config"}
    assert set(compose(metrics={"a": 1})) == {"metrics"}
    everything = compose(
        config={"a": 1}, wire=WireTensor(np.ones((1, 1), np.float32)), metrics={"b": 2}, weights={}
    )
    assert set(everything) == {"config", "wire", "weights", "metrics"}
    assert set(metrics_of(everything)) == {"b"}


def test_actions_are_of_flowers_categories() -> None:
    for action in Action:
        category, dot, name = action.value.partition(".")
        assert (category in ("query", "train", "evaluate"), dot) == (True, ".")
        assert action.name_in_app == name
