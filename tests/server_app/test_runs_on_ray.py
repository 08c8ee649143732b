# SPDX-License-Identifier: Apache-2.0
"""Whole runs against a real trunk actor on Ray: both transports, resume, a lost trunk."""

import os
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import ray
import torch
from federation import LocalGrid
from federation import tiny_config as local_config
from flwr.app import Message
from safetensors.torch import load_file

from clients.trunk_link import NAMESPACE
from config import ConfigError, RunConfig
from reports import RunFolder, RunFolderError
from server_app.run import execute
from strategies import RunFailed, TooFewClients, TrunkLost

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _ray() -> Iterator[None]:
    """A small local Ray, which finds the project's packages in its workers."""
    root = str(Path(__file__).resolve().parents[2])
    os.environ["PYTHONPATH"] = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def tiny_config(tmp_path: Path, **keys: object) -> RunConfig:
    """As ``local_config``, with time for an actor to come up on a busy machine."""
    return local_config(tmp_path, **{"start_timeout": 90.0, "step_timeout": 90.0, **keys})


def run_folder(config: RunConfig) -> RunFolder:
    return RunFolder.open(Path(config.runs_dir) / config.run_name)


def numbers(run: RunFolder) -> pd.DataFrame:
    """All metrics of a run that do not measure time."""
    table = run.metrics()
    timed = table["metric"].isin(["seconds", "images_per_second"])
    columns = ["round", "split", "client", "attribute", "metric"]
    return table[~timed].sort_values(columns).reset_index(drop=True)


def last_weights(run: RunFolder) -> dict[str, torch.Tensor]:
    """Trunk and averaged client weights of the last checkpoint."""
    folder = run.latest_checkpoint()
    assert folder is not None
    clients = folder / "clients.safetensors"
    return {
        **load_file(folder / "trunk.safetensors"),
        **(load_file(clients) if clients.exists() else {}),
    }


def assert_equal_runs(one: RunFolder, other: RunFolder) -> None:
    """The same numbers, bit by bit."""
    pd.testing.assert_frame_equal(numbers(one), numbers(other), check_exact=True)
    weights, others = last_weights(one), last_weights(other)
    assert weights.keys() == others.keys()
    assert all(torch.equal(weights[name], others[name]) for name in weights)


@pytest.mark.parametrize(
    "keys",
    [
        {"schedule": "splitfed-v1", "client_weights": "averaged", "permute": "row+column"},
        {"schedule": "splitfed-v2", "client_weights": "frozen", "wire_dtype": "fp16"},
    ],
    ids=["splitfed-v1", "splitfed-v2-frozen-fp16"],
)
def test_both_transports_give_equal_numbers(tmp_path: Path, keys: dict[str, object]) -> None:
    more = {
        "defences": "gn:0.2",
        "augment": "paper",
        "permute": "row",
        "drop_path": 0.1,
        **keys,
    }
    folders = []
    for transport in ("message", "ray"):
        config = tiny_config(tmp_path / transport, transport=transport, **more)
        execute(LocalGrid(config, 3), config)
        folders.append(run_folder(config))
    by_message, by_ray = folders
    results = [numbers(run).query("split != 'train'") for run in folders]
    pd.testing.assert_frame_equal(*results, check_exact=True)
    weights, others = last_weights(by_message), last_weights(by_ray)
    assert weights.keys() == others.keys()
    assert all(torch.equal(weights[name], others[name]) for name in weights)
    pd.testing.assert_frame_equal(traffic(by_message), traffic(by_ray))


def traffic(run: RunFolder) -> pd.DataFrame:
    """Bytes, messages and images of each leg that carries tensors of a step."""
    ledger = run.ledger()
    legs = ["smashed", "hidden", "hidden-gradient", "smashed-gradient"]
    steps = ledger[ledger["leg"].isin(legs)]
    return steps.groupby("leg")[["bytes", "messages", "images"]].sum()


WHOLE: dict[str, object] = {
    "schedule": "sequential",
    "rounds": 4,
    "optimizer": "adamw",
    "client_weights": "private",
    "evaluate_every": 1,
    "permute": "row",
    "defences": "gn:0.1",
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run of ``WHOLE`` that was never stopped."""
    config = tiny_config(tmp_path_factory.mktemp("whole"), **WHOLE)
    execute(LocalGrid(config, 2), config)
    return run_folder(config)


def in_the_middle_of(round: int, message: Message) -> bool:
    """Whether a request comes after the first one of a round."""
    told = message.content.config_records["config"]
    return told.get("round") == round and message.metadata.message_type == "train.finish"


def test_resume_equals_never_stopped(tmp_path: Path, whole: RunFolder) -> None:
    """A run that dies in round 3 of 4, with clients in the middle of it, and is resumed."""
    config = tiny_config(tmp_path, **WHOLE)

    def die(client: int, message: Message) -> str | None:
        if client == 1 and in_the_middle_of(3, message):
            raise KeyboardInterrupt
        return None

    with pytest.raises(KeyboardInterrupt):
        execute(LocalGrid(config, 2, sabotage=die), config)
    broken = run_folder(config)
    assert broken.facts()["status"] == "failed"
    checkpoint = broken.latest_checkpoint()
    assert checkpoint is not None
    assert checkpoint.name == "round-0002"
    resumed = config.model_copy(update={"resume": True})
    execute(LocalGrid(resumed, 2), resumed)
    assert broken.facts()["status"] == "finished"
    assert_equal_runs(broken, whole)


@pytest.mark.parametrize("transport", ["message", "ray"])
def test_a_lost_trunk_resumes_from_the_last_round(
    tmp_path: Path, whole: RunFolder, transport: str
) -> None:
    config = tiny_config(tmp_path, **{**WHOLE, "transport": transport})
    killed: list[str] = []

    def kill(client: int, message: Message) -> None:
        told = message.content.config_records["config"]
        steps = ("train.finish", "train.round")
        if killed or told.get("round") != 3 or message.metadata.message_type not in steps:
            return
        actors = ray.util.list_named_actors(all_namespaces=True)
        killed.extend(actor["name"] for actor in actors if actor["namespace"] == NAMESPACE)
        ray.kill(ray.get_actor(killed[0], namespace=NAMESPACE))

    execute(LocalGrid(config, 2, sabotage=kill), config)
    assert len(killed) == 1
    run = run_folder(config)
    assert run.facts()["resumed"][0]["after_round"] == 2
    weights, others = last_weights(run), last_weights(whole)
    assert all(torch.equal(weights[name], others[name]) for name in weights)
    results = [
        numbers(one).query("split != 'train'").reset_index(drop=True) for one in (run, whole)
    ]
    pd.testing.assert_frame_equal(*results, check_exact=True)


def test_the_trunk_needs_the_gpus_that_it_is_promised(tmp_path: Path) -> None:
    config = tiny_config(tmp_path, trunk_gpus=64.0, start_timeout=2.0)
    with pytest.raises(TrunkLost, match=r"trunk-gpus = 64, the cluster has 0"):
        execute(LocalGrid(config, 1), config)
    assert run_folder(config).facts()["status"] == "failed"


def test_a_nan_loss_ends_the_run_and_keeps_the_checkpoint(tmp_path: Path) -> None:
    for transport in ("message", "ray"):
        config = tiny_config(
            tmp_path / transport,
            transport=transport,
            schedule="sequential",
            rounds=3,
            lr_client=1e38,
            lr_client_end=1e38,
        )
        with pytest.raises(RunFailed, match=r"NaN|nan|client 0"):
            execute(LocalGrid(config, 1), config)
        facts = run_folder(config).facts()
        assert facts["status"] == "failed"
        assert "Traceback" in facts["error"]


def test_too_few_clients_end_the_run(tmp_path: Path) -> None:
    config = tiny_config(tmp_path, min_clients=3, start_timeout=0.5)
    with pytest.raises(TooFewClients, match=r"2 clients came .* expected are 3"):
        execute(LocalGrid(config, 2), config)


def test_traffic_is_recorded_as_sent(tmp_path: Path) -> None:
    config = tiny_config(tmp_path, record_traffic=1, permute="row", schedule="parallel")
    grid = LocalGrid(config, 2)
    execute(grid, config)
    files = sorted(run_folder(config).traffic_path.glob("*.safetensors"))
    assert [file.name for file in files] == [
        f"round-0002-step-0000-client-{client:03d}.safetensors" for client in range(2)
    ]
    sent = [
        torch.from_numpy(content.array_records["wire"]["payload"].numpy().copy())
        for client, what, content in grid.traffic
        if what == "up train.smash"
    ][-2:]
    recorded = [load_file(file)["smashed"] for file in files]
    assert all(any(torch.equal(one, other) for other in sent) for one in recorded)


def test_a_run_folder_is_not_overwritten_and_not_resumed_otherwise(tmp_path: Path) -> None:
    config = tiny_config(tmp_path, rounds=1, steps_per_round=1)
    execute(LocalGrid(config, 1), config)
    with pytest.raises(RunFolderError, match="resume"):
        execute(LocalGrid(config, 1), config)
    changed = config.model_copy(update={"resume": True, "lr_client": 0.05, "batch_size": 3})
    with pytest.raises(ConfigError) as caught:
        execute(LocalGrid(changed, 1), changed)
    assert {problem.key for problem in caught.value.problems} == {"lr-client", "batch-size"}


def test_a_resumed_client_without_its_state_is_told(tmp_path: Path) -> None:
    config = tiny_config(tmp_path, rounds=2, steps_per_round=1, schedule="sequential")

    def die(client: int, message: Message) -> str | None:
        if in_the_middle_of(2, message):
            raise KeyboardInterrupt
        return None

    with pytest.raises(KeyboardInterrupt):
        execute(LocalGrid(config, 1, sabotage=die), config)
    moved = config.model_copy(update={"resume": True, "state_dir": str(tmp_path / "elsewhere")})
    with pytest.raises(RunFailed, match=r"state of round 1 cannot be read from .*elsewhere"):
        execute(LocalGrid(moved, 1), moved)
