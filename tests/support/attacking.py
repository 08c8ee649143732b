# SPDX-License-Identifier: Apache-2.0
"""Running one attacker at a scene, in this process."""

from pathlib import Path

import torch
from torch import Tensor

from attacks import ATTACKERS, AttackOptions, Finding, Scene, ThreatModel
from attacks.attacker import Workshop


def workshop(folder: Path, **options: int) -> Workshop:
    """A workshop on the CPU that tells nobody of its progress."""
    return Workshop(folder, torch.device("cpu"), AttackOptions(**options), lambda *_: None)  # type: ignore[arg-type]


def findings(
    scene: Scene, name: str, folder: Path, threat: ThreatModel | None = None, **options: int
) -> dict[str, Finding]:
    """What an attacker finds under its first threat model (or ``threat``), by variant."""
    threat = threat or ATTACKERS[name].threats[0]
    attacker = ATTACKERS[name](scene.view(threat), workshop(folder, **options))
    attacker.learn()
    return {finding.variant: finding for finding in attacker.attack()}


def psnr(images: Tensor, truth: Tensor) -> float:
    """In dB for a peak of 1, mean over images."""
    return float((-10 * torch.log10((images - truth).square().mean(dim=(1, 2, 3)))).mean())


def placed(finding: Finding, scene: Scene) -> float:
    """Share of patch tokens that are put at their right place."""
    assert finding.places is not None
    patch = scene.truth.orders >= scene.geometry.prefix
    return float((finding.places == scene.truth.orders)[patch].float().mean())
