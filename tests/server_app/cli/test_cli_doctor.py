# SPDX-License-Identifier: Apache-2.0
"""What the doctor finds, and how the command exits."""

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import server_app.cli.health as health
from config import RunConfig
from server_app.cli import app
from server_app.cli.health.bundle import bundle_finding, environments
from server_app.cli.health.finding import Examination, Finding
from server_app.cli.health.inputs import data_source, weights_file
from server_app.cli.health.machine import memory, ports
from server_app.cli.health.packages import packages, python_version
from server_app.cli.health.storage import folder_finding


def examination(folder: Path, **keys: object) -> Examination:
    return Examination(config=RunConfig.model_validate(keys), app=folder)


def project(folder: Path, text: str) -> Examination:
    (folder / "pyproject.toml").write_text(f'[project]\nname = "x"\n{text}\n')
    return examination(folder)


@pytest.mark.parametrize(("wanted", "level"), [(">=3.11", "OK"), ("<3.11", "FAIL")])
def test_python(tmp_path: Path, wanted: str, level: str) -> None:
    (finding,) = python_version(project(tmp_path, f'requires-python = "{wanted}"'))
    assert finding.level == level


def test_packages_that_lack_or_do_not_fit_are_named(tmp_path: Path) -> None:
    text = (
        'dependencies = ["rich>=1", "typer>=999", "no-such-package>=1", "x; python_version<\'3\'"]'
    )
    findings = list(packages(project(tmp_path, text)))
    failed = {finding.subject: finding.advice for finding in findings if finding.level == "FAIL"}
    assert failed == {
        "typer": "pip install 'typer>=999'",
        "no-such-package": "pip install 'no-such-package>=1'",
    }


def test_data_and_weights(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(b"123")
    (tmp_path / "identity_CelebA.txt").touch()
    for check, keys, level in (
        (data_source, {}, "OK"),
        (data_source, {"data": f"celeba:{tmp_path}"}, "FAIL"),
        (data_source, {"data": "hf:flwrlabs/celeba"}, "WARN"),
        (weights_file, {}, "OK"),
        (weights_file, {"weights": str(tmp_path / "w")}, "OK"),
        (weights_file, {"weights": str(tmp_path / "v")}, "FAIL"),
        (weights_file, {"weights": "hub"}, "WARN"),
    ):
        (finding,) = check(examination(tmp_path, **keys))
        assert finding.level == level, keys
        assert finding.level == "OK" or finding.advice
    (finding,) = data_source(examination(tmp_path, data=f"celeba:{tmp_path}"))
    assert "img_align_celeba" in finding.detail
    assert "identity" not in finding.detail


def test_folders(tmp_path: Path) -> None:
    assert folder_finding("runs-dir", tmp_path / "a" / "b").level in ("OK", "WARN")
    (tmp_path / "file").touch()
    finding = folder_finding("runs-dir", tmp_path / "file" / "runs")
    assert finding.level == "FAIL"
    assert "--set runs-dir=DIR" in finding.advice


def test_an_environment_in_the_bundle_is_found(tmp_path: Path) -> None:
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    assert environments(tmp_path) == ["env"]
    fab = tmp_path / "x.fab"
    with zipfile.ZipFile(fab, "w") as archive:
        archive.writestr("app.py", "")
    assert bundle_finding(fab, ["env"]).level == "OK"
    with zipfile.ZipFile(fab, "a") as archive:
        archive.writestr("env/lib/x.py", "")
    assert bundle_finding(fab, ["env"]).level == "FAIL"


def test_this_machine(tmp_path: Path) -> None:
    assert [finding.level for finding in ports(examination(tmp_path))] == ["OK"]
    assert all(finding.detail for finding in memory(examination(tmp_path)))


@pytest.mark.parametrize(("level", "code"), [("OK", 0), ("WARN", 0), ("FAIL", 1)])
def test_only_a_failure_gives_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, level: health.Level, code: int
) -> None:
    def check(_: Examination) -> Iterator[Finding]:
        yield Finding(level, "thing", "as it is", "mend it")

    monkeypatch.setattr(health, "CHECKS", (check,))
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == code
    assert f"{level:<4}  thing: as it is → mend it" in result.output
