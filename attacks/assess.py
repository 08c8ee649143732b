# SPDX-License-Identifier: Apache-2.0
"""One attacker against one run, from its folder to rows of a table and pictures.

::

    <run>/attacks/<attacker>/
        options.json                 what the attack was asked for
        history.json                 learning curves: stage, epoch, loss, held_out
        <stage>.safetensors          what it has learned, so that it can go on
        reconstructions.safetensors  some victims and what the attacker made of them, uint8; the
                                     metadata have the mean SSIM of each
        finished.json                results are in the table; from how many auxiliary images
"""

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from attacks.attacker import Attacker, AttackOptions, Finding, Progress, Workshop
from attacks.errors import AttackError
from attacks.judge import Judge
from attacks.registry import ATTACKERS
from attacks.scene import Scene
from attacks.threat import ThreatModel
from reports import RunFolder, atomic
from reports.exclusive import exclusive

__all__ = ["assess", "check_attack"]

PICTURES = 16
SCORING = ("face", "metrics")
"""Options that change how findings are scored, not what is found."""

OPTIONS, FINISHED, PICTURE_FILE = "options.json", "finished.json", "reconstructions.safetensors"


def check_attack(run: RunFolder, names: list[str], options: AttackOptions) -> None:
    """Find out what can be wrong before any work starts.

    Raises
    ------
    AttackError
        If the run cannot be attacked, or not by one of these attackers.
    """
    scene = Scene(run, images=options.images, client=options.client)
    problems = [f"{name}: {why}" for name in names if (why := _unfit(name, scene))]
    if problems:
        raise AttackError("; ".join(problems))
    Judge(scene, options)


def _unfit(name: str, scene: Scene) -> str | None:
    return ATTACKERS[name].unfit(scene.geometry)


def assess(
    path: Path,
    name: str,
    options: AttackOptions,
    progress: Progress,
    device: torch.device | None = None,
) -> list[dict[str, object]]:
    """Let one attacker at a run, score what it finds, and add the rows to the run's table.

    Started again with the same options, it goes on where it stopped, also if it is to be scored
    otherwise; with others, from the start.

    Parameters
    ----------
    path : Path
        The run's folder.
    name : str
        A key of ``ATTACKERS``.
    options : AttackOptions
    progress : callable
    device : torch.device, optional
        Where it computes; by default the CPU.

    Returns
    -------
    list of dict
        The rows, as in :data:`reports.schemas.ATTACKS`.

    Raises
    ------
    AttackError
        If the run cannot be attacked so.
    """
    run = RunFolder.open(path)
    try:
        with exclusive(run.path / "attacks" / f".{name}.lock"):
            return _assess(run, name, options, progress, device)
    except BlockingIOError as error:
        raise AttackError(f"{name}: another process lets it at {run.path}; wait for it") from error


def _assess(
    run: RunFolder,
    name: str,
    options: AttackOptions,
    progress: Progress,
    device: torch.device | None,
) -> list[dict[str, object]]:
    scene = Scene(run, images=options.images, client=options.client)
    if why := _unfit(name, scene):
        raise AttackError(f"{name}: {why}")
    folder = _open_workshop(run.path / "attacks" / name, scene, options)
    device = device or torch.device("cpu")
    judge = Judge(scene, options)
    rows: list[dict[str, object]] = []
    pictures: dict[str, Tensor] = {"original": _bytes(scene.truth.images)}
    ssim: dict[str, str] = {}
    for threat in ATTACKERS[name].threats:
        shop = Workshop(folder, device, options, progress)
        attacker = ATTACKERS[name](scene.view(threat), shop)
        untrained = attacker.attack() if attacker.learns else []
        attacker.learn()
        progress(f"{name}: attack", 0, 1)
        before = {finding.variant: finding for finding in untrained}
        for finding in attacker.attack():
            found = _rows(scene, attacker, threat, finding, before.get(finding.variant), judge)
            rows += found
            if finding.images is not None:
                picture = _picture_name(attacker, threat, finding)
                pictures[picture] = _bytes(finding.images)
                scores = {row["metric"]: row["value"] for row in found}
                if "ssim" in scores:
                    ssim[picture] = str(scores["ssim"])
    run.append_attacks(rows)
    if len(pictures) > 1:
        atomic.write_bytes(folder / PICTURE_FILE, save(pictures, metadata=ssim))
    atomic.write_text(folder / FINISHED, json.dumps(_summary(rows, scene)))
    progress(f"{name}: attack", 1, 1)
    return rows


def _open_workshop(folder: Path, scene: Scene, options: AttackOptions) -> Path:
    """The attacker's folder. What it has learned stays if it was learned for the same attack."""
    asked = {**asdict(options), "round": scene.round, "client": scene.client}
    file = folder / OPTIONS
    try:
        before = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except ValueError:
        before = {}
    if {**before, **{key: asked[key] for key in SCORING}} != asked:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    (folder / FINISHED).unlink(missing_ok=True)
    atomic.write_text(file, json.dumps(asked, indent=1))
    return folder


def _rows(
    scene: Scene,
    attacker: Attacker,
    threat: ThreatModel,
    finding: Finding,
    untrained: Finding | None,
    judge: Judge,
) -> list[dict[str, object]]:
    config = scene.config
    common: dict[str, object] = {
        "attack": attacker.name,
        "variant": finding.variant,
        "threat": threat.name,
        "round": scene.round,
        "client": scene.client,
        "seed": attacker.shop.options.seed,
        "defences": config.defences,
        "defence_point": config.defence_point,
        "permute": config.permute,
        "rotation": config.rotation,
        "edge_position": config.edge_position,
    }
    return [{**common, **scored} for scored in judge.score(finding, untrained)]


def _summary(rows: list[dict[str, object]], scene: Scene) -> dict[str, object]:
    people = len(np.unique(scene.auxiliary.identities))
    known = {"images": len(scene.auxiliary.images), "people": people}
    return {"rows": len(rows), "auxiliary": known}


def _picture_name(attacker: Attacker, threat: ThreatModel, finding: Finding) -> str:
    parts = [finding.variant] if finding.variant else []
    if len(attacker.threats) > 1:
        parts.append(threat.name)
    return "/".join(["reconstruction", *([", ".join(parts)] if parts else [])])


def _bytes(images_MCHW: Tensor) -> Tensor:
    """The first pictures as uint8 [k, H, W, 3]."""
    kept = images_MCHW[:PICTURES].permute(0, 2, 3, 1)
    return (kept * 255).round().clamp(0, 255).to(torch.uint8).contiguous()
