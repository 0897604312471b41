"""The pytest plugin, in sessions of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.lab.replay.keep_recordings import FOLDER

PLUGIN = "kantan_agents.testing.pytest_plugin"
TEST = """
from kantan_agents import Agent
from kantan_agents.testing import ScriptedModel, ScriptedToolCall

def t1(x: str = "1") -> str:
    "Do it."
    raise AssertionError("a tool has run")

def agent(instructions="Hi", answers=()):
    return Agent("a", instructions, model=ScriptedModel(list(answers)))

def test_same(replayed):
    assert replayed("recordings/plain.json", agent()).output == "Yes"

def test_changed(replayed):
    replayed("recordings/plain.json", agent("Hello", ["New"]))

def test_ignored(replayed):
    replayed("recordings/plain.json", agent("Bye"), ignore="instructions")

def test_no_file(replayed):
    replayed("recordings/none.json", agent())
"""


@pytest.fixture
def session(pytester: pytest.Pytester) -> pytest.Pytester:
    (pytester.path / "recordings").mkdir()
    shutil.copy(FOLDER / "plain.json", pytester.path / "recordings")
    pytester.makepyfile(test_agents=TEST)
    return pytester


def run(session: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    options = ["-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    if all(one.value != PLUGIN for one in entry_points(group="pytest11")):
        options += ["-p", PLUGIN]  # a checkout that is not installed
    return session.runpytest_inprocess(*options, *arguments)


def test_a_difference_is_a_failed_assertion_of_one_test(session: pytest.Pytester) -> None:
    before = (session.path / "recordings" / "plain.json").read_bytes()
    result = run(session)
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(
        [
            "*ReplayDifferenceError: *E92* at model call 1 of 'a': instructions changed",
            "E*-Hi",
            "E*+Hello",
            "*RecordingFileError: *E91*none.json: No such file or directory*",
        ]
    )
    assert (session.path / "recordings" / "plain.json").read_bytes() == before


def test_recordings_that_differ_are_recorded_again(session: pytest.Pytester) -> None:
    path = session.path / "recordings" / "plain.json"
    result = run(session, "--update-recordings", "-k", "same")
    result.assert_outcomes(passed=1, deselected=3)
    assert path.read_bytes() == (FOLDER / "plain.json").read_bytes()  # nothing differed
    result = run(session, "--update-recordings", "-k", "changed")
    result.assert_outcomes(passed=1, deselected=3)
    result.stdout.fnmatch_lines([f"*recorded again: {path}"])
    assert '"New"' in path.read_text()
    assert '"Hello"' in path.read_text()
    run(session, "-k", "changed").assert_outcomes(passed=1, deselected=3)


def test_the_plugin_is_found_by_its_entry_point() -> None:
    if sys.version_info < (3, 11):
        pytest.skip("tomllib is new in Python 3.11")
    import tomllib

    root = Path(__file__).parents[3]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"kantan_agents": PLUGIN}


def test_a_session_without_replays_does_not_import_the_sdk() -> None:
    shown = "[name for name in ('agents', 'openai', 'httpx') if name in sys.modules]"
    code = f"import sys, {PLUGIN}; print({shown})"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert finished.stdout.strip() == "[]"
