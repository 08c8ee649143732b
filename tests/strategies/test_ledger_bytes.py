# SPDX-License-Identifier: Apache-2.0
"""The ledger: bytes of each leg are those of the tensors' shapes, and all that travelled."""

from collections import defaultdict
from pathlib import Path

import pytest
from federation import Federation, federate, tiny_config

from clients.protocol import WEIGHTS, WIRE, payload_bytes
from strategies.ledger import DIRECTIONS

STEPS, BATCH, ROUNDS, CLIENTS = 2, 3, 2, 2
TOKENS, DIM = 17, 16


def run(tmp_path: Path, **changes: object) -> Federation:
    keys = {
        "schedule": "parallel", "rounds": ROUNDS, "steps_per_round": STEPS, "batch_size": BATCH,
        "evaluate_batch_size": 8, **changes,
    }  # fmt: skip
    return federate(tiny_config(tmp_path, **keys), CLIENTS).train()


def entries(run: Federation, round: int) -> dict[tuple[str, int, str], dict[str, object]]:
    rows = run.witness.rounds[round - 1].ledger
    return {(str(r["phase"]), int(str(r["client"])), str(r["leg"])): r for r in rows}


@pytest.mark.parametrize("wire", ["fp32", "fp16"])
@pytest.mark.parametrize("returns", ["pooled", "all"])
@pytest.mark.parametrize("mode", ["averaged", "private", "frozen"])
def test_bytes_follow_from_shapes(tmp_path: Path, wire: str, returns: str, mode: str) -> None:
    trained = run(tmp_path, wire_dtype=wire, return_=returns, client_weights=mode)
    size = {"fp32": 4, "fp16": 2}[wire]
    token_bytes = size * TOKENS * DIM
    hidden_bytes = token_bytes if returns == "all" else size * DIM
    images = STEPS * BATCH
    weights = 4 * sum(t.numel() for t in trained.strategy.state.weights.values())
    assert (weights > 0) == (mode == "averaged")
    for client in range(CLIENTS):
        first, last = entries(trained, 1), entries(trained, ROUNDS)
        evaluated = sum(
            trained.strategy.roster.images(split, client) for split in ("validation", "test")
        )
        expected = {
            ("train", "smashed"): (images * token_bytes, images),
            ("train", "hidden"): (images * hidden_bytes, images),
            ("train", "hidden-gradient"): (images * hidden_bytes, images),
            ("train", "smashed-gradient"): (images * token_bytes, images),
            ("train", "weights-up"): (weights, 0),
            ("train", "weights-down"): (weights, 0),
            ("evaluate", "evaluate-smashed"): (evaluated * token_bytes, evaluated),
            ("evaluate", "evaluate-hidden"): (evaluated * hidden_bytes, evaluated),
            # Each split is an evaluation of its own, opened with the averaged weights.
            ("evaluate", "weights-down"): (2 * weights, 0),
        }
        if mode == "frozen":
            del expected["train", "smashed-gradient"]
        told = {
            (phase, leg): (row["bytes"], row["images"])
            for (phase, who, leg), row in last.items()
            if who == client and DIRECTIONS[leg] != "none"
        }
        assert told == expected
        assert first["train", client, "weights-down"]["bytes"] == 0
        assert first["train", client, "weights-up"]["bytes"] == weights
        assert last["train", client, "smashed"]["messages"] == STEPS
        assert last["train", client, "weights-up"]["messages"] == int(mode == "averaged")
    for row in last.values():
        assert row["direction"] == DIRECTIONS[str(row["leg"])]
        assert float(str(row["seconds"])) >= 0


@pytest.mark.parametrize("schedule", ["parallel", "sequential"])
def test_the_ledger_tells_of_every_byte_of_tensors(tmp_path: Path, schedule: str) -> None:
    trained = run(tmp_path, schedule=schedule, evaluate_every=1)
    sent: dict[tuple[int, str], int] = defaultdict(int)
    for client, leg, content in trained.grid.traffic:
        way = leg.partition(" ")[0]
        sent[client, way] += payload_bytes(content, WIRE) + payload_bytes(content, WEIGHTS)
    told: dict[tuple[int, str], int] = defaultdict(int)
    for result in trained.witness.rounds:
        for row in result.ledger:
            if row["direction"] != "none":
                told[int(str(row["client"])), str(row["direction"])] += int(str(row["bytes"]))
    assert dict(told) == dict(sent)
