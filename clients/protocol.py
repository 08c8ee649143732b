# SPDX-License-Identifier: Apache-2.0
"""The messages between server and clients: their actions, records and fields.

Both apps read and write messages with the functions here only; ``docs/protocol.md`` lists what
each message holds and who sees it.
"""

import time
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from torch import Tensor

from split import WireTensor

Value = bool | int | float | str
Number = int | float
Fields = Mapping[str, Any]
"""The named values of a config or metrics record."""


class Action(StrEnum):
    """Message types, as ``<category>.<action>`` of Flower."""

    DESCRIBE = "query.describe"
    LOCK = "query.lock"
    SMASH = "train.smash"
    FINISH = "train.finish"
    ABSORB = "train.absorb"
    ROUND = "train.round"
    EVALUATE_SMASH = "evaluate.smash"
    EVALUATE_FINISH = "evaluate.finish"
    EVALUATE_ROUND = "evaluate.round"

    @property
    def name_in_app(self) -> str:
        """The name under which a ClientApp registers the action."""
        return self.value.partition(".")[2]


CONFIG, WIRE, WEIGHTS, METRICS = "config", "wire", "weights", "metrics"
"""Names of the records of a message."""

PAYLOAD, SCALE = "payload", "scale"


def compose(
    *,
    config: Mapping[str, Value] | None = None,
    wire: WireTensor | None = None,
    weights: Mapping[str, Tensor] | None = None,
    metrics: Mapping[str, Number | list[int]] | None = None,
) -> RecordDict:
    """The content of a message. A wire tensor's scale travels with the config or the metrics."""
    content = RecordDict()
    if wire is not None:
        content[WIRE] = ArrayRecord({PAYLOAD: Array(np.ascontiguousarray(wire.payload))})
        scale = {SCALE: float(wire.scale)}
        if config is not None:
            config = {**config, **scale}
        else:
            metrics = {**(metrics or {}), **scale}
    if weights is not None:
        content[WEIGHTS] = ArrayRecord(
            {name: Array(tensor.cpu().numpy()) for name, tensor in weights.items()}
        )
    if config is not None:
        content[CONFIG] = ConfigRecord(dict(config))
    if metrics is not None:
        content[METRICS] = MetricRecord(dict(metrics))
    return content


def wire_of(content: RecordDict) -> WireTensor:
    """The wire tensor of a message."""
    fields: Fields = content.config_records.get(CONFIG) or metrics_of(content)
    payload = content.array_records[WIRE][PAYLOAD].numpy()
    return WireTensor(payload, float(fields[SCALE]))


def weights_of(content: RecordDict) -> dict[str, Tensor] | None:
    """The weights of a message, or None."""
    record = content.array_records.get(WEIGHTS)
    return None if record is None else dict(record.to_torch_state_dict())


def config_of(content: RecordDict) -> Fields:
    """The config of a request."""
    return content.config_records[CONFIG]


def metrics_of(content: RecordDict) -> Fields:
    """The metrics of a reply."""
    return content.metric_records[METRICS]


def payload_bytes(content: RecordDict, record: str) -> int:
    """Bytes of the arrays in one record, without Flower's framing."""
    arrays = content.array_records.get(record)
    return sum(int(array.numpy().nbytes) for array in arrays.values()) if arrays else 0


class Stamp:
    """When a request came and when its reply went, on the client's clock, in seconds since 1970.

    With the server's own times they split a leg's seconds into travel and work. Clocks of
    different machines may differ; on one machine they are the same clock.
    """

    def __init__(self) -> None:
        self.received = time.time()

    def fields(self) -> dict[str, float]:
        """The reply's two fields."""
        return {"received-at": self.received, "replied-at": time.time()}


def reply_to(message: Message, content: RecordDict) -> Message:
    """A reply with ``content``."""
    return Message(content, reply_to=message)
