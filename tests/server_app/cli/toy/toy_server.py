# SPDX-License-Identifier: Apache-2.0
"""ServerApp of the toy that the tests start; the key ``seed`` says what shall happen."""

import json
import os
import time
from logging import INFO, WARNING
from pathlib import Path

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.common.logger import log
from flwr.serverapp import Grid, ServerApp

CLIENT_RAISES, CLIENT_HANGS = 1, 2

app = ServerApp()


def replace(path: Path, values: dict[str, object]) -> None:
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(values), encoding="utf-8")
    draft.replace(path)


@app.main()
def main(grid: Grid, context: Context) -> None:
    config = context.run_config
    run = Path(str(config["runs-dir"])) / str(config["run-name"])
    run.mkdir(parents=True, exist_ok=True)
    facts: dict[str, object] = {"status": "running", "error": None, "config": dict(config)}
    facts["environment"] = {k: v for k, v in os.environ.items() if k.startswith(("FLWR", "RAY"))}
    replace(run / "run.json", facts)
    log(INFO, "toy run starts")
    log(WARNING, "toy warning")
    try:
        train(grid, run, int(config["seed"]))
    except Exception as error:
        replace(run / "run.json", facts | {"status": "failed", "error": str(error)})
        raise
    replace(run / "run.json", facts | {"status": "finished"})


def train(grid: Grid, run: Path, behaviour: int) -> None:
    nodes = list(grid.get_node_ids())
    while not nodes:
        time.sleep(0.1)
        nodes = list(grid.get_node_ids())
    progress: dict[str, object] = {"round": 1, "rounds": 2, "step": 1, "steps": 4, "phase": "train"}
    progress |= {"images_per_second": 12.5, "message": "toy"}
    replace(run / "progress.json", progress)
    content = RecordDict({"toy": ConfigRecord({"behaviour": behaviour})})
    messages = [Message(content, dst_node_id=node, message_type="train") for node in nodes]
    for reply in grid.send_and_receive(messages, timeout=120):
        if reply.has_error():
            raise RuntimeError("a client failed")
    log(INFO, "toy run ends with %d replies", len(messages))
