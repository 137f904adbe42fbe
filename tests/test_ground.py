"""The ground: files that must agree with each other, and a Makefile that sets everything up and survives being killed.

The Makefile is run for real, on a stand-in for Python that writes down what it was asked to do: installing takes
minutes, and what is tested here is when it happens.
"""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from gnomon import __version__

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

# `-c` is the question whether this Python will do; `-m venv .venv` copies the stand-in there; the rest is noted down.
STAND_IN = """#!/bin/sh
case "$*" in
    -c*) exit 0 ;;
    "-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python && cp "$0" .venv/bin/gnomon && echo venv >> log ;;
    *) echo "$*" >> log; case "$*" in *"$FAIL_ON"*) exit 3 ;; esac ;;
esac
"""


@pytest.fixture
def make(tmp_path):
    """make(target, ...) runs the Makefile and gives back its exit code, its output and what Python was asked for."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    stand_in = tmp_path / "stand-in"
    stand_in.write_text(STAND_IN)
    stand_in.chmod(0o755)
    log = tmp_path / "log"

    def run(*arguments, fail_on="nothing", python=stand_in):
        log.write_text("")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        done = subprocess.run(
            ["make", f"PYTHON={python}", *arguments],
            cwd=tmp_path,
            env=environment | {"FAIL_ON": fail_on},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr, log.read_text().splitlines()

    return run


def kinds(log):
    """What was asked for, in short: venv, pip, core, dev, pytest, demo."""
    words = {"--upgrade pip": "pip", "--editable": "core", "--group dev": "dev", "-m pytest": "pytest", "demo": "demo"}
    return [next((word for sign, word in words.items() if sign in line), line) for line in log]


def test_the_first_demo_installs_the_core_alone_and_the_second_starts_at_once(make):
    assert kinds(make("demo")[2]) == ["venv", "pip", "core", "demo"]
    assert kinds(make("demo")[2]) == ["demo"]


def test_the_first_test_run_installs_the_tools_too_and_the_second_starts_at_once(make):
    assert kinds(make("test")[2]) == ["venv", "pip", "core", "dev", "pytest"]
    assert kinds(make("test")[2]) == ["pytest"]


def test_tests_after_a_demo_install_only_what_is_missing(make):
    make("demo")
    assert kinds(make("test")[2]) == ["dev", "pytest"]
    assert kinds(make("demo")[2]) == ["demo"]


def test_every_installation_is_held_by_the_constraints(make):
    installs = [line for line in make("test")[2] if "pip install" in line]
    assert len(installs) == 3
    assert all("--constraint constraints.txt" in line for line in installs)


@pytest.mark.parametrize("changed", ["pyproject.toml", "constraints.txt"])
def test_a_change_of_the_requirements_installs_again(make, tmp_path, changed):
    make("test")
    later = (tmp_path / ".venv" / ".dev").stat().st_mtime + 10
    os.utime(tmp_path / changed, (later, later))
    assert kinds(make("test")[2]) == ["venv", "pip", "core", "dev", "pytest"]


@pytest.mark.parametrize("step", ["--upgrade pip", "--editable", "--group dev"])
def test_an_installation_that_did_not_finish_is_begun_anew(make, tmp_path, step):
    code, _, _ = make("test", fail_on=step)
    assert code != 0
    (tmp_path / ".venv" / "half").touch()
    # Its process is gone, and so that no other has its number by chance, the number is one that none can have.
    (tmp_path / ".venv" / ".unfinished").write_text("999999999\n")
    code, output, log = make("test")
    assert code == 0
    assert "did not finish" in output
    assert kinds(log) == ["venv", "pip", "core", "dev", "pytest"]
    assert not (tmp_path / ".venv" / "half").exists()


def test_an_installation_that_another_make_is_at_is_left_alone(make, tmp_path):
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / ".unfinished").write_text(f"{os.getpid()}\n")
    code, output, log = make("demo")
    assert code != 0
    assert f"process {os.getpid()}" in output
    assert log == []
    assert (tmp_path / ".venv" / ".unfinished").exists()


def test_no_fit_python_is_said_clearly(make):
    code, output, log = make("demo", python="/nowhere/python")
    assert code != 0
    assert "Gnomon needs Python >= 3.11" in output
    assert "/nowhere/python" in output
    assert log == []


def test_a_failing_test_run_fails_make(make):
    assert make("test", fail_on="-m pytest")[0] != 0


def test_the_ci_script_stops_at_the_first_failure_and_needs_no_input():
    script = (ROOT / ".ci" / "run").read_text()
    assert "set -euo pipefail" in script
    assert "</dev/null" in script
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert subprocess.run(["bash", "-n", ROOT / ".ci" / "run"], check=False).returncode == 0


# ------------------------------------------------------------------ files that must agree


def pinned() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {name.lower(): version for name, version in pins}


def bare(requirement: str) -> str:
    return re.split(r"[>=<~! ]", requirement)[0]


def test_everything_asked_for_is_pinned_in_the_constraints():
    groups = [item for group in PROJECT["dependency-groups"].values() for item in group if isinstance(item, str)]
    wanted = [*PROJECT["project"]["dependencies"], *groups, *PROJECT["build-system"]["requires"], "pip"]
    assert {bare(requirement) for requirement in wanted} <= set(pinned())
    assert pinned()["torch"] == "2.13.0"


def test_the_constraints_hold_exact_public_versions_only():
    assert all(re.fullmatch(r"[\d.]+((a|b|rc|\.?post)\d+)?", version) for version in pinned().values())


def test_the_package_asks_for_lower_bounds_only():
    assert all(re.fullmatch(r"[a-z0-9-]+>=[\d.]+", requirement) for requirement in PROJECT["project"]["dependencies"])


def test_the_citation_names_this_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", citation, flags=re.MULTILINE) == [__version__]


def test_the_changelog_has_a_place_for_what_comes():
    assert "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_tour_passes_every_package():
    tour = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    parts = [place for place in (ROOT / "src" / "gnomon").iterdir() if not place.name.startswith("_")]
    names = [f"{part.name}/" if part.is_dir() else part.name for part in parts if part.name != "py.typed"]
    assert [name for name in sorted(names) if f"`{name}`" not in tour] == []


def test_every_file_that_the_tour_names_is_there():
    tour = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = {name for name in re.findall(r"`([\w/]+\.py)`", tour) if not name.endswith(("mine.py", "my_encoding.py"))}
    there = [
        f"/{file.relative_to(ROOT).as_posix()}" for folder in ("src", "tests") for file in (ROOT / folder).rglob("*.py")
    ]
    assert len(named) > 40
    assert sorted(name for name in named if not any(file.endswith(f"/{name}") for file in there)) == []
