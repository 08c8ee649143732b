# SPDX-License-Identifier: Apache-2.0
"""Threat models and attackers on what clients send.

==============  ===================================================================
`threat`        threat models: what an attacker may know
`view`          what it sees; reaching for anything else is an error
`scene`         a finished run set up to be attacked, and the truth about its victims
`attacker`      what an attacker is, and what it finds
`registry`      the attackers by name, one file each
`metrics`       how much came back
`judge`         findings scored, beside what one has without an attack
`assess`        one attacker against one run, from folder to table
==============  ===================================================================
"""

from attacks.assess import assess, check_attack
from attacks.attacker import Attacker, AttackOptions, Finding
from attacks.errors import AttackError
from attacks.registry import ATTACKERS, attackers_of, check_attackers
from attacks.scene import LEAST_PEOPLE, Scene
from attacks.threat import THREATS, Grant, ThreatModel
from attacks.view import View, Withheld

__all__ = [
    "ATTACKERS",
    "LEAST_PEOPLE",
    "THREATS",
    "AttackError",
    "AttackOptions",
    "Attacker",
    "Finding",
    "Grant",
    "Scene",
    "ThreatModel",
    "View",
    "Withheld",
    "assess",
    "attackers_of",
    "check_attack",
    "check_attackers",
]
