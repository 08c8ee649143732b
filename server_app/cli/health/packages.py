# SPDX-License-Identifier: Apache-2.0
"""Python and the packages against the project's requirements."""

import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from server_app.cli.health.finding import Examination, Finding


def python_version(examination: Examination) -> Iterator[Finding]:
    """Is this Python one of those supported?"""
    version = ".".join(str(part) for part in sys.version_info[:3])
    wanted = str(_project(examination).get("requires-python", ""))
    fine = SpecifierSet(wanted).contains(version)
    advice = "" if fine else f"use Python {wanted}"
    yield Finding("OK" if fine else "FAIL", "Python", version, advice)


def packages(examination: Examination) -> Iterator[Finding]:
    """Is every dependency installed, in a version that fits?"""
    fits = []
    for text in _project(examination).get("dependencies", []):
        requirement = Requirement(text)
        if requirement.marker and not requirement.marker.evaluate():
            continue
        version = installed(requirement.name)
        if version is not None and requirement.specifier.contains(version, prereleases=True):
            fits.append(f"{requirement.name} {version}")
        else:
            found = "not installed" if version is None else f"{version} does not fit"
            advice = f"pip install '{requirement}'"
            yield Finding("FAIL", requirement.name, found, advice)
    yield Finding("OK", "packages", ", ".join(fits))
    if (ray := installed("ray")) is None:
        yield Finding("FAIL", "ray", "not installed", "pip install 'flwr[simulation]'")
    else:
        yield Finding("OK", "ray", ray)


def installed(name: str) -> str | None:
    """The version of an installed distribution, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _project(examination: Examination) -> dict[str, Any]:
    text = (examination.app / "pyproject.toml").read_text(encoding="utf-8")
    project: dict[str, Any] = tomllib.loads(text)["project"]
    return project
