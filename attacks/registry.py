# SPDX-License-Identifier: Apache-2.0
"""All attackers by name. To add one, write its file and add a line here."""

from collections.abc import Iterator

from attacks.analytic import AnalyticAttacker
from attacks.attacker import Attacker
from attacks.attributes import AttributesAttacker
from attacks.decoder import DecoderAttacker
from attacks.errors import AttackError
from attacks.jigsaw import JigsawAttacker
from attacks.metrics import check_face, check_metrics, metrics_of
from attacks.optimise import OptimiseAttacker
from attacks.position import PositionAttacker
from config import Problem, RunConfig

ATTACKERS: dict[str, type[Attacker]] = {
    attacker.name: attacker
    for attacker in (
        DecoderAttacker,
        PositionAttacker,
        AnalyticAttacker,
        JigsawAttacker,
        OptimiseAttacker,
        AttributesAttacker,
    )
}


def attackers_of(names: str) -> list[str]:
    """The attackers of a comma list, each once.

    Raises
    ------
    AttackError
        If one is unknown.
    """
    wanted = list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    unknown = [name for name in wanted if name not in ATTACKERS]
    if unknown:
        allowed = ", ".join(ATTACKERS)
        raise AttackError(f"unknown: {', '.join(unknown)}; allowed is a comma list of {allowed}")
    return wanted


def check_attackers(config: RunConfig) -> Iterator[Problem]:
    """Problems of the keys of attacks: a rule for ``parse_run_config``."""
    try:
        wanted = attackers_of(config.attack)
    except AttackError as error:
        yield Problem("attack", config.attack, str(error))
        return
    if "analytic" in wanted and config.cut:
        yield Problem("attack", config.attack, f"analytic takes cut = 0, and cut is {config.cut}")
    if "jigsaw" in wanted and "row" in config.permute and config.permute_cls:
        yield Problem("attack", config.attack, "jigsaw takes permute-cls = false")
    yield from _scores(config, used=bool(wanted))
    if wanted and config.auxiliary == 0:
        yield Problem("auxiliary", config.auxiliary, "attackers need images: above 0")
    if wanted and config.client_weights == "private":
        allowed = "attacks need the edge in the run folder: averaged or frozen"
        yield Problem("client-weights", config.client_weights, allowed)


def _scores(config: RunConfig, *, used: bool) -> Iterator[Problem]:
    """Problems of metrics; what they need is loaded only if it will be ``used``."""
    try:
        names = metrics_of(config.attack_metrics)
        if used:
            check_metrics(names, config.image_size)
    except AttackError as error:
        yield Problem("attack-metrics", config.attack_metrics, str(error))
    face = config.attack_face
    try:
        if face:
            check_face(face, opened=used)
    except AttackError as error:
        yield Problem("attack-face", face, str(error).removeprefix(f"attack-face = {face!r}: "))
