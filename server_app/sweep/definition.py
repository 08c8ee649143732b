# SPDX-License-Identifier: Apache-2.0
"""A sweep as its file asks for it::

name = "noise"                    # folder of the sweep, in runs-dir
preset = "celeba-small"           # of all trials; smoke if left out
clients = 4                       # left out: as for `permsplit run`
seeds = [0, 1]                    # every trial once with each

[set]                             # keys that all trials share
attack = "decoder,position"

[grid]                            # every combination of these values ...
permute = ["none", "row"]

[[cases]]                         # ... for each of these, if there are any
defences = ""

[[cases]]
defences = "gn:0.5"
defence-point = "embedding"
"""

import difflib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import tomli_w

from config import Problem, keys
from reports.run_folder import NAME
from server_app.sweep.errors import SweepError

__all__ = ["FIELDS", "SweepDefinition", "load_sweep", "parse_sweep"]

FIELDS = ("name", "preset", "clients", "seeds", "set", "grid", "cases")
OWN_KEYS = {
    "runs-dir": "the trials lie in the sweep's folder; choose where with --runs-dir",
    "run-name": "a trial is named after its values",
    "resume": "a sweep continues its trials by itself",
}
"""Keys of a run that a sweep sets, and why nobody else does."""

SWEEPS_FOLDER = Path(__file__).resolve().parents[2] / "sweeps"


@dataclass(frozen=True, kw_only=True)
class SweepDefinition:
    """A sweep, its fields checked one by one; what the trials' keys hold is not yet.

    Parameters
    ----------
    name : str
        Name of its folder.
    preset : str, optional
        Preset of all trials; None: the default.
    clients : int, optional
        Simulated clients of each trial; None: as ``permsplit run`` chooses.
    seeds : tuple of int
        One trial each.
    common : Mapping
        Keys that all trials share: the table ``set``.
    grid : Mapping
        Keys and their values: all combinations.
    cases : tuple of Mapping
        Keys that go together, each multiplied by the grid; none: the grid alone.
    """

    name: str
    preset: str | None = None
    clients: int | None = None
    seeds: tuple[int, ...] = (0,)
    common: Mapping[str, object] = field(default_factory=dict)
    grid: Mapping[str, Sequence[object]] = field(default_factory=dict)
    cases: tuple[Mapping[str, object], ...] = ()

    @property
    def varied(self) -> list[str]:
        """Keys by which trials are told apart: of the cases, of the grid, and the seed."""
        return list(dict.fromkeys([*(k for case in self.cases for k in case), *self.grid, "seed"]))

    def combinations(self) -> Iterator[dict[str, object]]:
        """The values of each trial's own keys, cases first, seeds last."""
        for case in self.cases or ({},):
            for values in product(*self.grid.values()):
                for seed in self.seeds:
                    yield {**case, **dict(zip(self.grid, values, strict=True)), "seed": seed}

    def with_common(self, values: Mapping[str, object], source: str) -> "SweepDefinition":
        """The same sweep with further keys for all trials, which win over those of ``set``.

        Raises
        ------
        SweepError
            If one of them is varied by the sweep, or set by the sweep alone.
        """
        problems = [Problem(f"--set {p.key}", p.value, p.message) for p in _not_common(values)]
        problems += [
            Problem(f"--set {key}", values[key], "the sweep varies this key; change its file")
            for key in values
            if key in self.varied and key not in ("seed", *OWN_KEYS)
        ]
        if problems:
            raise SweepError(source, problems)
        return replace(self, common={**self.common, **values})

    def as_toml(self) -> str:
        """The sweep as a file that asks for the same again."""
        document: dict[str, Any] = {"name": self.name}
        document |= {"preset": self.preset} if self.preset else {}
        document |= {"clients": self.clients} if self.clients else {}
        document["seeds"] = list(self.seeds)
        document |= {"set": dict(self.common)} if self.common else {}
        document |= {"grid": {k: list(v) for k, v in self.grid.items()}} if self.grid else {}
        document |= {"cases": [dict(case) for case in self.cases]} if self.cases else {}
        return tomli_w.dumps(document)


def load_sweep(path: str | Path) -> SweepDefinition:
    """The sweep of a TOML file, or of the name of one that is shipped.

    Raises
    ------
    SweepError
        If there is no such file, it is not valid TOML, or a field is wrong: all are named.
    """
    shipped = SWEEPS_FOLDER / f"{path}.toml"
    file = shipped if not Path(path).is_file() and shipped.is_file() else Path(path)
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        names = ", ".join(sorted(found.stem for found in SWEEPS_FOLDER.glob("*.toml")))
        allowed = "allowed is a TOML file" + (f", or one of {names}" if names else "")
        why = "no such file" if isinstance(error, FileNotFoundError) else str(error)
        raise SweepError(str(path), [Problem("SWEEP", str(path), f"{why}; {allowed}")]) from error
    except ValueError as error:
        problem = Problem("SWEEP", str(path), f"not valid TOML: {error}")
        raise SweepError(str(path), [problem]) from error
    return parse_sweep(values, str(file))


def parse_sweep(values: Mapping[str, Any], source: str) -> SweepDefinition:
    """The sweep that a TOML document asks for.

    Raises
    ------
    SweepError
        With every problem of the fields; those of the trials' keys are found by
        :func:`server_app.sweep.trials.plan_trials`.
    """
    problems = [*_unknown(values), *_wrong_fields(values)]
    if not problems:
        problems = [*_wrong_tables(values)]
    if problems:
        raise SweepError(source, problems)
    return SweepDefinition(
        name=values["name"],
        preset=values.get("preset"),
        clients=values.get("clients"),
        seeds=tuple(values.get("seeds", (0,))),
        common=values.get("set", {}),
        grid=values.get("grid", {}),
        cases=tuple(values.get("cases", ())),
    )


def _unknown(values: Mapping[str, Any]) -> Iterator[Problem]:
    for name in values:
        if name in FIELDS:
            continue
        hint = f"allowed are {', '.join(FIELDS)}"
        if close := difflib.get_close_matches(name, FIELDS, n=1):
            hint = f"did you mean '{close[0]}'?"
        if name in keys():
            hint = "a key of a run belongs into [set] or [grid]"
            hint = "give it as seeds = [...]" if name == "seed" else hint
        yield Problem(name, values[name], f"unknown field; {hint}")


def _wrong_fields(values: Mapping[str, Any]) -> Iterator[Problem]:
    """Fields that are missing, or not of their type."""
    name, preset, clients = (values.get(key) for key in ("name", "preset", "clients"))
    if not isinstance(name, str) or not NAME.fullmatch(name):
        allowed = "letters, digits, '.', '_' and '-', and no dot in front"
        yield Problem("name", "" if name is None else name, f"needed, for a folder: {allowed}")
    if preset is not None and not (isinstance(preset, str) and preset):
        yield Problem("preset", preset, "must be the name of a preset, or a path to a TOML file")
    if clients is not None and (type(clients) is not int or clients < 1):
        yield Problem("clients", clients, "must be a whole number >= 1")
    seeds = values.get("seeds", [0])
    if not isinstance(seeds, list) or not seeds or any(type(seed) is not int for seed in seeds):
        yield Problem("seeds", seeds, "must be a list of whole numbers, one at least")
    for table in ("set", "grid"):
        if not isinstance(values.get(table, {}), dict):
            yield Problem(table, values[table], f"must be a table: [{table}]")
    cases = values.get("cases", [])
    if not isinstance(cases, list) or not all(isinstance(case, dict) for case in cases):
        yield Problem("cases", cases, "must be tables, each headed by [[cases]]")


def _wrong_tables(values: Mapping[str, Any]) -> Iterator[Problem]:
    """Keys in the wrong table or in two, and grids without values."""
    common, grid = values.get("set", {}), values.get("grid", {})
    cases = dict.fromkeys(key for case in values.get("cases", ()) for key in case)
    for table in (common, grid, dict.fromkeys(cases, "...")):
        yield from _not_common(table)
    for key, options in grid.items():
        if not isinstance(options, list) or not options:
            yield Problem(f"grid.{key}", options, "must be a list of values, one at least")
    places = {"set": common, "grid": grid, "cases": cases}
    for key in dict.fromkeys([*common, *grid, *cases]):
        found = [place for place, table in places.items() if key in table]
        if len(found) > 1:
            yield Problem(key, "...", f"is in {' and in '.join(found)}; allowed is one of them")


def _not_common(table: Mapping[str, object]) -> Iterator[Problem]:
    """Keys that a sweep sets in another way."""
    reasons = {**OWN_KEYS, "seed": "give it as seeds = [...] in the sweep's file"}
    for key, value in table.items():
        if key in reasons:
            yield Problem(key, value, reasons[key])
