"""The second chance of failed tests: what passes alone is unstable, all else still fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# `first_time` is true in the first run of a test only.
FIRST_TIME = """
import os, pathlib, pytest
def first_time(name):
    marker = pathlib.Path(__file__).with_name(name)
    found = marker.exists()
    marker.touch()
    return not found
"""
PASSES = "def test_passes(): pass\n"
UNSTABLE = "def test_unstable(): assert not first_time('unstable')\n"
CRASHES_ONCE = "def test_crashes_once(): first_time('crash') and os._exit(3)\n"
CRASHES = "def test_crashes(): os._exit(3)\n"
FAILS = "def test_fails(): assert 'the reason' == ''\n"
FIXTURES = """
@pytest.fixture
def starts():
    assert not first_time('setup')

@pytest.fixture
def ends():
    yield
    assert not first_time('teardown')

def test_error(starts): pass
def test_two_errors(ends): assert not first_time('call')
"""


class Outcome:
    def __init__(self, modules: dict[str, str], directory: Path, *arguments: str) -> None:
        for name, code in modules.items():
            (directory / f"test_{name}.py").write_text(FIRST_TIME + code, encoding="utf-8")
        (directory / "pytest.ini").touch()
        reports = directory / "reports"
        plugin = ["-p", "tests.second_chance", f"--second-chance={reports}"]
        self.process = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                *plugin,
                *arguments,
                "--rootdir",
                str(directory),
                str(directory),
            ],
            cwd=directory,
            env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
            | {
                "PYTHONPATH": str(ROOT),
                "PYTEST_ADDOPTS": "-p tests.second_chance -p xdist.plugin",
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # each session would import all of Hypothesis
            },
            capture_output=True,
            text=True,
            check=False,
        )
        self.status = self.process.returncode
        self.failed, self.unstable = (
            path.read_text(encoding="utf-8") if path.exists() else ""
            for path in (reports / "failed.txt", reports / "unstable.txt")
        )


def test_tests_that_pass_alone_are_listed_as_unstable(tmp_path: Path) -> None:
    outcome = Outcome({"a": PASSES + UNSTABLE + FIXTURES + CRASHES_ONCE}, tmp_path, "-n", "2")
    assert outcome.status == 0, outcome.process.stdout
    names = ["test_crashes_once", "test_error", "test_two_errors", "test_unstable"]
    assert sorted(outcome.unstable.splitlines()) == [f"test_a.py::{name}" for name in names]
    assert outcome.failed == ""


def test_tests_that_fail_twice_fail_the_session(tmp_path: Path) -> None:
    outcome = Outcome({"a": PASSES + UNSTABLE + FAILS + CRASHES}, tmp_path, "-n", "2")
    assert outcome.status == 1, outcome.process.stdout
    assert outcome.unstable == "test_a.py::test_unstable\n"
    assert "FAILED test_a.py::test_fails (call)\n" in outcome.failed
    assert "AssertionError: assert 'the reason' == ''\n" in outcome.failed
    assert "FAILED test_a.py::test_crashes (" in outcome.failed
    assert "crashed while running" in outcome.failed
    assert outcome.failed.count("FAILED") == 2


def test_many_failures_have_no_second_chance(tmp_path: Path) -> None:
    code = "@pytest.mark.parametrize('n', range(6))\ndef test_unstable(n): assert not first_time(str(n))\n"
    outcome = Outcome({"a": code}, tmp_path)
    assert outcome.status == 1
    assert outcome.failed.count("FAILED") == 6
    assert outcome.unstable == ""


def test_a_module_that_cannot_be_imported_has_no_second_chance(tmp_path: Path) -> None:
    modules = {"a": UNSTABLE, "b": "assert not first_time('import')\n"}
    outcome = Outcome(modules, tmp_path, "--continue-on-collection-errors")
    assert outcome.status == 1
    assert "FAILED test_b.py (collect)" in outcome.failed
    assert outcome.unstable == ""


def test_an_interrupted_session_has_no_second_chance(tmp_path: Path) -> None:
    outcome = Outcome({"a": UNSTABLE + "def test_stops(): pytest.exit('enough')\n"}, tmp_path)
    assert outcome.status == pytest.ExitCode.INTERRUPTED
    assert outcome.failed.startswith("FAILED test_a.py::test_unstable (call)")
    assert outcome.unstable == ""


def test_a_complaint_of_another_plugin_is_not_forgiven(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "def pytest_sessionfinish(session): session.testsfailed += 1\n", encoding="utf-8"
    )
    outcome = Outcome({"a": UNSTABLE}, tmp_path)
    assert outcome.status == 1
    assert outcome.unstable == ""
