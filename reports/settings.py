# SPDX-License-Identifier: Apache-2.0
"""Settings: what protects a run, as tables and figures name it. Runs of one setting are repeats."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from config import ATTACK_KEYS
from reports.run_folder import RunFolder

PLACES = ("runs-dir", "run-name", "state-dir", "cache-dir", "key-dir", "resume")
NOT_OF_A_SETTING = (
    *PLACES, *ATTACK_KEYS, "seed", "step-timeout", "start-timeout", "trunk-gpus", "trunk-threads",
    "min-clients", "record-traffic",
)  # fmt: skip
"""Keys that neither protect anything nor change what is sent; ``seed`` makes repeats."""

FAMILIES = ("SL", "GN", "LP", "BS")
"""As the paper names them: no defence, Gaussian noise, low-pass filter, batch shuffle."""

NAMED_APART = ("defences", "permute")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What protects a run.

    Parameters
    ----------
    family : str
        ``SL`` without a defence, else the defences in their order: ``LP``, ``LP+GN``.
    strength : str
        Their parameters: ``0.05``, or ``0.05, 0.5``; empty without a defence.
    permute : str
        ``none``, ``row``, ``column``, ``row+column``.
    keys : tuple of (str, str)
        Further keys that differ among the runs compared, with their values here.
    """

    family: str
    strength: str
    permute: str
    keys: tuple[tuple[str, str], ...] = ()

    @property
    def other(self) -> str:
        """The further keys as text: ``rotation fixed``; empty without any."""
        return ", ".join(f"{key} {value}" for key, value in self.keys)

    @property
    def label(self) -> str:
        """Name of the setting: ``SL``, ``LP 0.05 + row``, ``SL + row (rotation fixed)``."""
        name = f"{self.family} {self.strength}".strip()
        name += "" if self.permute == "none" else f" + {self.permute}"
        return f"{name} ({self.other})" if self.other else name

    def common(self, other: "Setting") -> bool:
        """Whether no key that is named in both settings differs."""
        mine, theirs = dict(self.keys), dict(other.keys)
        return all(mine[key] == theirs[key] for key in mine.keys() & theirs.keys())

    @property
    def order(self) -> tuple[int, str, str, list[float], int]:
        """By what settings are sorted: the paper's families first, strengths as numbers."""
        known = FAMILIES.index(self.family) if self.family in FAMILIES else len(FAMILIES)
        kinds = ("none", "row", "column", "row+column")
        kind = kinds.index(self.permute) if self.permute in kinds else len(kinds)
        return known, self.family, self.other, _numbers(self.strength), kind


def differing(runs: Sequence[RunFolder]) -> list[str]:
    """Keys in which the runs differ, in the order of their configs; names and places left out."""
    configs = [run.config() for run in runs]
    keys = dict.fromkeys(key for config in configs for key in config if key not in PLACES)
    return [key for key in keys if any(c.get(key) != configs[0].get(key) for c in configs)]


def settings(runs: Sequence[RunFolder]) -> list[Setting]:
    """The setting of each run; further keys are named where they differ among the runs."""
    apart = [
        key for key in differing(runs) if key not in NOT_OF_A_SETTING and key not in NAMED_APART
    ]
    return [setting_of(run.config(), apart) for run in runs]


def setting_of(config: Mapping[str, Any], apart: Sequence[str] = ()) -> Setting:
    """The setting of one configuration, with the keys ``apart`` named if they matter to it."""
    defences = [step.strip() for step in str(config.get("defences", "")).split(",")]
    parts = [step.partition(":") for step in defences if step]
    keys = tuple((key, _shown(config.get(key))) for key in apart if _matters(key, config))
    return Setting(
        family="+".join(name.upper() for name, _, _ in parts) or "SL",
        strength=", ".join(strength for _, _, strength in parts),
        permute=str(config.get("permute", "none")),
        keys=keys,
    )


def _matters(key: str, config: Mapping[str, Any]) -> bool:
    """Whether a key has any effect: a rotation has none without a row permutation."""
    if key in ("rotation", "permute-cls", "key-source"):
        return "row" in str(config.get("permute", "none"))
    return key != "defence-point" or bool(str(config.get("defences", "")).strip())


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _numbers(strength: str) -> list[float]:
    try:
        return [float(part) for part in strength.split(",") if part.strip()]
    except ValueError:
        return [float("inf")]
