# SPDX-License-Identifier: Apache-2.0
"""The ClientApp: messages become moves of a session, and the session's results become replies."""

import functools
import re
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from flwr.app import ConfigRecord, Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.constant import ErrorCode

from clients.owner import Owner
from clients.protocol import (
    Action,
    Fields,
    Number,
    Stamp,
    compose,
    config_of,
    reply_to,
    weights_of,
    wire_of,
)
from clients.records import load_state, load_totals, save_state, save_totals
from clients.secrets import client_secret, column_secret
from clients.session import Session, Totals
from clients.state import ClientState, StateFolder
from clients.trunk_link import TrunkLink
from config import RunConfig, parse_run_config
from equivariance import Secret, conjugate_state, sample_column_order
from split import ModelSpec, build_split, decode, encode

app = ClientApp()
RUN_NAME = re.compile(r"[A-Za-z0-9._-]+")
Handler = Callable[[Message, Context], Message]


def _loud(handler: Handler) -> Handler:
    """Send a failure back with its traceback, which Flower's own error reply leaves out."""

    @functools.wraps(handler)
    def guarded(message: Message, context: Context) -> Message:
        try:
            return handler(message, context)
        except Exception:
            code = ErrorCode.CLIENT_APP_RAISED_EXCEPTION
            return Message(Error(code, traceback.format_exc()), reply_to=message)

    return guarded


# -- queries ----------------------------------------------------------------------------------


@app.query(Action.DESCRIBE.name_in_app)
@_loud
def describe(message: Message, context: Context) -> Message:
    """Who this client is and how many images of each split it holds."""
    owner = _owner(context)
    counts = {split: len(owner.shard(split)) for split in ("train", "validation", "test")}
    who = {"partition-id": owner.client, "num-partitions": owner.clients}
    return reply_to(message, compose(metrics={**who, **counts}))


@app.query(Action.LOCK.name_in_app)
@_loud
def lock(message: Message, context: Context) -> Message:
    """The trunk's first weights under the column key, so that the server never has the key."""
    config = _owner(context).config
    trunk = build_split(ModelSpec.of(config), config.cut).trunk
    order = sample_column_order(column_secret(config), dim=trunk.dim, heads=trunk.heads)
    locked = conjugate_state(trunk.state_dict(), order, heads=trunk.heads)
    return reply_to(message, compose(weights=locked))


# -- transport "message": one message per move --------------------------------------------------


@app.train(Action.SMASH.name_in_app)
@_loud
def smash(message: Message, context: Context) -> Message:
    """Begin a round: take the averaged weights if they came, and send the first smashed data."""
    stamp, now = Stamp(), config_of(message.content)
    session = _session(message, context)
    session.begin_round(int(now["round"]))
    content = _smashed(session, now, int(now["step"]), stamp)
    save_state(context, session)
    return reply_to(message, content)


@app.train(Action.FINISH.name_in_app)
@_loud
def finish(message: Message, context: Context) -> Message:
    """Loss and gradient of hidden."""
    stamp, now = Stamp(), config_of(message.content)
    session = _session(message, context)
    hidden = decode(wire_of(message.content))
    result = session.finish(*_place(now), hidden, float(now["progress"]))
    save_state(context, session)
    gradient = encode(result.hidden_gradient, session.owner.config.wire_dtype)
    metrics = {"loss": result.loss, "images": len(hidden), **stamp.fields()}
    return reply_to(message, compose(wire=gradient, metrics=metrics))


@app.train(Action.ABSORB.name_in_app)
@_loud
def absorb(message: Message, context: Context) -> Message:
    """Take the gradient of the smashed data; go on to the next step, or end the round."""
    stamp, now = Stamp(), config_of(message.content)
    session = _session(message, context)
    frozen = session.owner.config.client_weights == "frozen"
    gradient = None if frozen else decode(wire_of(message.content))
    session.absorb(*_place(now), gradient, float(now["progress"]))
    if bool(now["last"]):
        content = _round_end(session, now, stamp.fields())
    else:
        content = _smashed(session, now, int(now["step"]) + 1, stamp)
    save_state(context, session)
    return reply_to(message, content)


# -- transport "ray": one message per round -----------------------------------------------------


@app.train(Action.ROUND.name_in_app)
@_loud
def train_round(message: Message, context: Context) -> Message:
    """All steps of a round against the named trunk actor."""
    stamp, now = Stamp(), config_of(message.content)
    session = _session(message, context)
    config, round, steps = session.owner.config, int(now["round"]), int(now["steps"])
    link = TrunkLink(str(now["actor"]), session.owner.client)
    session.begin_round(round)
    loss, images = 0.0, 0
    for step in range(steps):
        progress = (round - 1 + step / steps) / config.rounds
        smashed = session.smash(round, step, steps)
        hidden = link.forward(encode(smashed, config.wire_dtype), round, step)
        result = session.finish(round, step, steps, decode(hidden), progress)
        loss, images = loss + result.loss * len(smashed), images + len(smashed)
        if not torch.isfinite(torch.tensor(result.loss)):
            bad = {"loss": result.loss, "images": images, "diverged-step": step, **stamp.fields()}
            return reply_to(message, compose(metrics=bad))
        answer = link.backward(
            encode(result.hidden_gradient, config.wire_dtype),
            progress,
            answer=config.client_weights != "frozen",
        )
        gradient = None if answer is None else decode(answer)
        session.absorb(round, step, steps, gradient, progress)
    metrics = {"loss": loss / images, "images": images, **link.legs.fields(), **stamp.fields()}
    content = _round_end(session, now, metrics)
    save_state(context, session)
    return reply_to(message, content)


# -- evaluation -------------------------------------------------------------------------------


@app.evaluate(Action.EVALUATE_SMASH.name_in_app)
@_loud
def evaluate_smash(message: Message, context: Context) -> Message:
    """Begin an evaluation: the first batch's smashed data."""
    stamp, now = Stamp(), config_of(message.content)
    session = _session(message, context)
    save_totals(context, Totals())
    content = _evaluation_smashed(session, now, 0, stamp)
    save_state(context, session)
    return reply_to(message, content)


@app.evaluate(Action.EVALUATE_FINISH.name_in_app)
@_loud
def evaluate_finish(message: Message, context: Context) -> Message:
    """Count a batch; go on to the next one, or send the counts of all."""
    stamp, now = Stamp(), config_of(message.content)
    session, totals = _session(message, context), load_totals(context)
    split, round, index = str(now["split"]), int(now["round"]), int(now["step"])
    session.evaluation_finish(split, round, index, decode(wire_of(message.content)), totals)
    if bool(now["last"]):
        content = compose(metrics={**_total_fields(totals), **stamp.fields()})
        totals = Totals()
    else:
        content = _evaluation_smashed(session, now, index + 1, stamp)
    save_totals(context, totals)
    return reply_to(message, content)


@app.evaluate(Action.EVALUATE_ROUND.name_in_app)
@_loud
def evaluate_round(message: Message, context: Context) -> Message:
    """A whole evaluation against the named trunk actor."""
    stamp, now = Stamp(), config_of(message.content)
    session, totals = _session(message, context), Totals()
    split, round = str(now["split"]), int(now["round"])
    link = TrunkLink(str(now["actor"]), session.owner.client)
    for index in range(int(now["steps"])):
        smashed = session.evaluation_smash(split, round, index)
        hidden = link.infer(encode(smashed, session.owner.config.wire_dtype))
        session.evaluation_finish(split, round, index, decode(hidden), totals)
    save_state(context, session)
    metrics = {**_total_fields(totals), **link.legs.fields(), **stamp.fields()}
    return reply_to(message, compose(metrics=metrics))


# -- inside -----------------------------------------------------------------------------------


@functools.lru_cache(maxsize=64)
def _config(items: tuple[tuple[str, object], ...]) -> RunConfig:
    return parse_run_config(dict(items))


@functools.lru_cache(maxsize=64)
def _owner_of(config: RunConfig, client: int, clients: int, secret: Secret) -> Owner:
    return Owner(config, client, clients, secret)


LOCAL_KEYS = ("data", "weights", "cache-dir", "key-dir", "state-dir")
"""Keys whose values are a machine's own: a SuperNode's ``--node-config`` may set them."""


def _owner(context: Context) -> Owner:
    own = {key: context.node_config[key] for key in LOCAL_KEYS if key in context.node_config}
    config = _config(tuple({**context.run_config, **own}.items()))
    client = int(context.node_config["partition-id"])
    held = context.state.config_records.get("secret")
    known = Secret.from_hex(str(held["hex"])) if held is not None else None
    secret = known or client_secret(config, client)
    context.state["secret"] = ConfigRecord({"hex": secret.hex()})
    return _owner_of(config, client, int(context.node_config["num-partitions"]), secret)


def _folder(owner: Owner, run: str) -> StateFolder:
    # The name comes from the server: it must not lead out of the client's folder.
    if run in ("", ".", "..") or not RUN_NAME.fullmatch(run):
        raise ValueError(f"run = {run!r}: a run's name has letters, digits, '.', '_' and '-' only")
    return StateFolder(Path(owner.config.state_dir) / run / f"client-{owner.client:03d}")


def _session(message: Message, context: Context) -> Session:
    """The client as the server expects it: from its state, its disk, or from the start.

    A request that opens a round or an evaluation names the last round that the client completed
    (``restore``). A state in the middle of a round, or of another round, is then replaced: a
    round counts as a whole or not at all.
    """
    owner, now = _owner(context), config_of(message.content)
    state = load_state(context)
    if "restore" in now:
        expected = int(now["restore"])
        if not (state.finished == state.begun == expected and state.tensors):
            folder = _folder(owner, str(now["run"]))
            folder.drop_after(expected)
            state = folder.load(expected) if expected else ClientState()
    session = Session(owner, state)
    weights = weights_of(message.content)
    if weights is not None:
        session.replace_weights(weights)
    return session


def _place(now: Fields) -> tuple[int, int, int]:
    return int(now["round"]), int(now["step"]), int(now["steps"])


def _smashed(session: Session, now: Fields, step: int, stamp: Stamp) -> RecordDict:
    smashed = session.smash(int(now["round"]), step, int(now["steps"]))
    wire = encode(smashed, session.owner.config.wire_dtype)
    return compose(wire=wire, metrics={"images": len(smashed), **stamp.fields()})


def _evaluation_smashed(session: Session, now: Fields, index: int, stamp: Stamp) -> RecordDict:
    smashed = session.evaluation_smash(str(now["split"]), int(now["round"]), index)
    wire = encode(smashed, session.owner.config.wire_dtype)
    return compose(wire=wire, metrics={"images": len(smashed), **stamp.fields()})


def _round_end(session: Session, now: Fields, metrics: Mapping[str, Number]) -> RecordDict:
    session.end_round(int(now["round"]))
    _folder(session.owner, str(now["run"])).save(session.state())
    config = session.owner.config
    batch = min(config.batch_size, len(session.owner.shard("train")))
    metrics = {"num-examples": batch * int(now["steps"]), **metrics}
    averaged = config.client_weights == "averaged"
    return compose(weights=session.weights() if averaged else None, metrics=metrics)


def _total_fields(totals: Totals) -> dict[str, int | float | list[int]]:
    return {
        "images": totals.images,
        "loss": totals.loss / max(totals.images, 1),
        "positives": totals.positives,
        "true-positives": totals.true_positives,
        "true-negatives": totals.true_negatives,
    }
