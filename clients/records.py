# SPDX-License-Identifier: Apache-2.0
"""A client's state in Flower's ``context.state``: edge, tail, moments, counters, no more."""

from flwr.app import Array, ArrayRecord, ConfigRecord, Context

from clients.protocol import Fields
from clients.session import Session, Totals
from clients.state import PARTS, ClientState

COUNTERS, TOTALS = "counters", "totals"


def save_state(context: Context, session: Session) -> None:
    """Put the session's state into ``context.state``."""
    state = session.state()
    for part in PARTS:
        context.state[part] = ArrayRecord(
            {name: Array(tensor.numpy()) for name, tensor in state.tensors[part].items()}
        )
    context.state[COUNTERS] = ConfigRecord({"finished": state.finished, "begun": state.begun})


def load_state(context: Context) -> ClientState:
    """The state of :func:`save_state`, or a fresh one."""
    counters: Fields | None = context.state.config_records.get(COUNTERS)
    if counters is None:
        return ClientState()
    tensors = {
        part: dict(context.state.array_records[part].to_torch_state_dict()) for part in PARTS
    }
    return ClientState(tensors, finished=int(counters["finished"]), begun=int(counters["begun"]))


def save_totals(context: Context, totals: Totals) -> None:
    """Keep the counts of an evaluation that goes on."""
    context.state[TOTALS] = ConfigRecord(
        {
            "images": totals.images,
            "loss": totals.loss,
            "positives": totals.positives,
            "true-positives": totals.true_positives,
            "true-negatives": totals.true_negatives,
        }
    )


def load_totals(context: Context) -> Totals:
    """The counts of :func:`save_totals`."""
    held: Fields = context.state.config_records[TOTALS]
    return Totals(
        images=int(held["images"]),
        loss=float(held["loss"]),
        positives=list(held["positives"]),
        true_positives=list(held["true-positives"]),
        true_negatives=list(held["true-negatives"]),
    )
