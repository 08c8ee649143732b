# SPDX-License-Identifier: Apache-2.0
"""A run folder with a checkpoint, as training would leave it, made in a second without training."""

from pathlib import Path

from federation import TINY

from config import RunConfig, parse_run_config
from reports import RunFolder
from server_app.checkpoint import save_checkpoint
from server_app.checks import RULES
from split import ModelSpec, build_split
from strategies import RunState

ATTACKED: dict[str, object] = TINY | {
    "data": "synthetic:300",
    "auxiliary": 0.4,
    "dim": 48,
    "permute": "row",
    "evaluate-batch-size": 16,
}
"""16-pixel faces in 16 patches; a token has as many features as its patch has values, 48."""


def finished_run(tmp_path: Path, *, clients: int = 2, **keys: object) -> RunFolder:
    """A run of two clients whose checkpoint holds the first weights; ``dim=24`` sets a key."""
    changes = {name.rstrip("_").replace("_", "-"): value for name, value in keys.items()}
    places = {"runs-dir": str(tmp_path / "runs"), "state-dir": str(tmp_path / "state")}
    config = parse_run_config({**ATTACKED, **places, **changes}, RULES)
    run = RunFolder.create(config.runs_dir, config.run_name, config.model_dump(by_alias=True))
    run.add_facts({"clients": clients})
    write_checkpoint(run, config)
    run.set_status("finished")
    return run


def write_checkpoint(run: RunFolder, config: RunConfig, round: int = 1) -> None:
    """The checkpoint of ``round`` with the model's first weights."""
    parts = build_split(ModelSpec.of(config), config.cut)
    weights = {f"edge/{name}": tensor for name, tensor in parts.edge.state_dict().items()}
    weights |= {f"tail/{name}": tensor for name, tensor in parts.tail.state_dict().items()}
    averaged = weights if config.client_weights == "averaged" else {}
    state = RunState(round=round, weights=averaged, finished={0: round, 1: round})
    save_checkpoint(run, state, (parts.trunk.state_dict(), {}), keep=2)
