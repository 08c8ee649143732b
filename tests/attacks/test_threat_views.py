# SPDX-License-Identifier: Apache-2.0
"""An attacker cannot read what its threat model withholds."""

from pathlib import Path

import pytest
import torch
from finished import finished_run

from attacks import (
    ATTACKERS,
    AttackOptions,
    Finding,
    Grant,
    Scene,
    ThreatModel,
    View,
    Withheld,
)
from attacks.attacker import Workshop
from attacks.threat import THREATS


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return Scene(finished_run(tmp_path_factory.mktemp("view")), images=16)


@pytest.mark.parametrize("withheld", list(Grant))
def test_a_view_without_a_grant_refuses_the_field(scene: Scene, withheld: Grant) -> None:
    others = frozenset(Grant) - {withheld}
    view = scene.view(ThreatModel(name="test", grants=others, description=""))
    with pytest.raises(Withheld, match=withheld.value):
        getattr(view, withheld.value)
    for grant in others:
        assert getattr(view, grant.value) is not None


@pytest.mark.parametrize("threat", THREATS.values(), ids=THREATS)
def test_a_view_does_not_even_hold_what_is_withheld(scene: Scene, threat: ThreatModel) -> None:
    view = scene.view(threat)
    assert set(view._granted) == set(threat.grants)


class Watched(View):
    """A view that remembers which grants were used."""

    def __init__(self, view: View, used: set[Grant]) -> None:
        super().__init__(view.threat, view.geometry, view.smashed, view._granted)
        self.used = used

    def _get(self, grant: Grant) -> object:
        self.used.add(grant)
        return super()._get(grant)


def run_attacker(name: str, view: View, folder: Path) -> list[Finding]:
    options = AttackOptions(images=16, epochs=1)
    shop = Workshop(folder, torch.device("cpu"), options, lambda *_: None)
    attacker = ATTACKERS[name](view, shop)
    attacker.learn()
    return attacker.attack()


@pytest.mark.parametrize("name", ATTACKERS)
def test_every_attacker_lives_on_its_own_grants(scene: Scene, name: str, tmp_path: Path) -> None:
    """It uses nothing else, and fails as soon as anything that it uses is withheld."""
    for threat in ATTACKERS[name].threats:
        used: set[Grant] = set()
        assert run_attacker(name, Watched(scene.view(threat), used), tmp_path / threat.name)
        assert used <= threat.grants
        for grant in used:
            rest = frozenset(threat.grants - {grant})
            poorer = ThreatModel(name="poorer", grants=rest, description="")
            if grant is Grant.ORDERS:
                continue  # analytic then finds them itself
            with pytest.raises(Withheld, match=grant.value):
                run_attacker(name, scene.view(poorer), tmp_path / grant.value)


def test_auxiliary_people_are_no_victims(scene: Scene) -> None:
    people = set(scene.auxiliary.identities.tolist())
    for client in range(scene.clients):
        owner = scene._owner(client)
        for split in ("train", "validation", "test"):
            assert people.isdisjoint(owner.shard(split).identities.tolist())
