"""``kantan-agents replay`` and ``traces save``: from a database to a file to a check in CI."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kantan_agents import Agent, record_traces
from kantan_agents.testing import ScriptedModel
from tests.cli.conftest import Invoke
from tests.lab.replay.keep_recordings import FOLDER

APP = """
from kantan_agents import Agent
from kantan_agents.testing import ScriptedModel, ScriptedToolCall

def t1(x: str = "1") -> str:
    "Do it."
    raise AssertionError("a tool has run")

same = Agent("a", "Hi", model=ScriptedModel([]))
other = Agent("a", "Hello\\x1b[31m", model=ScriptedModel(["New"]))
number = 3
def made():
    return same
def broken():
    raise RuntimeError("no key")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "app_to_replay.py").write_text(APP)
    for name in ("plain", "refused"):
        shutil.copy(FOLDER / f"{name}.json", tmp_path)
    yield tmp_path
    sys.modules.pop("app_to_replay", None)


@pytest.mark.parametrize("name", ["same", "made"])
def test_an_unchanged_agent_is_the_same(folder: Path, kantan_agents: Invoke, name: str) -> None:
    outcome = kantan_agents("replay", "plain.json", "--agent", f"app_to_replay:{name}")
    assert (outcome.code, outcome.stdout, outcome.stderr) == (0, "same      plain.json\n", "")


def test_a_difference_is_shown_without_control_characters(folder: Path, kantan_agents: Invoke) -> None:
    before = (folder / "plain.json").read_bytes()
    outcome = kantan_agents("replay", "plain.json", "plain.json", "--agent", "app_to_replay:other")
    assert outcome.code == 1
    shown = (
        "different plain.json\n  model call 1 of 'a': instructions changed\n    -Hi\n    +Hello[U+001B][31m\n"
    )
    assert outcome.stdout == f"{shown * 2}2 different\n"
    assert "\x1b" not in outcome.stdout
    assert (folder / "plain.json").read_bytes() == before


def test_parts_can_be_left_out(folder: Path, kantan_agents: Invoke) -> None:
    arguments = ("replay", "plain.json", "--agent", "app_to_replay:other")
    assert kantan_agents(*arguments, "--ignore", "tools", "--ignore", "instructions").code == 0
    assert kantan_agents(*arguments, "--match", "tools").code == 0
    assert kantan_agents(*arguments, "--ignore", "tools").code == 1
    outcome = kantan_agents(*arguments, "--ignore", "tool")
    assert outcome.code == 2
    assert "[E75]" in outcome.stderr
    assert "did you mean 'tools'" in outcome.stderr


def test_what_the_provider_has_done_is_refused_unless_it_is_accepted(
    folder: Path, kantan_agents: Invoke
) -> None:
    data = json.loads((folder / "plain.json").read_text())
    (call,) = data["runs"][0]["model_calls"]
    call["answer"]["output"].insert(0, {"type": "web_search_call", "id": "ws_1", "status": "completed"})
    (folder / "plain.json").write_text(json.dumps(data))
    arguments = ("replay", "plain.json", "--agent", "app_to_replay:same")
    outcome = kantan_agents(*arguments)
    assert outcome.code == 2
    assert "[E93]" in outcome.stdout
    assert "'web_search'" in outcome.stdout
    assert kantan_agents(*arguments, "--accept", "file_search", "--accept", "web_search").code == 0


def test_update_records_again_what_differs(folder: Path, kantan_agents: Invoke) -> None:
    arguments = ("replay", "plain.json", "--agent", "app_to_replay:other")
    outcome = kantan_agents(*arguments, "--update")
    assert outcome.code == 0
    assert outcome.stdout.startswith("updated   plain.json\n")
    assert kantan_agents(*arguments).code == 0


def test_json_has_the_differences(folder: Path, kantan_agents: Invoke) -> None:
    files = ("plain.json", "refused.json", "none.json")
    outcome = kantan_agents("replay", *files, "--agent", "app_to_replay:other", "--json")
    assert outcome.code == 2
    first, second, third = json.loads(outcome.stdout)
    assert first["outcome"] == "different"
    assert first["place"] == "model call 1 of 'a'"
    assert [one["part"] for one in first["differences"]] == ["instructions"]
    assert (first["differences"][0]["before"], second["outcome"]) == ("Hi", "different")
    assert third["outcome"] == "refused"
    assert "[E91]" in third["error"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("recordings",), "name the file of a recording"),
        (("plain.json",), "name the agent to replay with"),
        (("plain.json", "--agent", "app_to_replay"), "it must be MODULE:NAME"),
        (("plain.json", "--agent", "app_to_replay:none"), "has no attribute 'none'"),
        (("plain.json", "--agent", "app_to_replay:number"), "it must be an Agent, not int"),
        (("plain.json", "--agent", "app_to_replay:broken"), "no key"),
        (("plain.json", "--agent", "no_such_module:a"), "No module named 'no_such_module'"),
    ],
)
def test_bad_arguments(folder: Path, kantan_agents: Invoke, arguments: tuple[str, ...], reason: str) -> None:
    outcome = kantan_agents("replay", *arguments)
    assert outcome.code == 2
    assert reason in outcome.stderr
    assert outcome.stderr.count("\n") == 1


def test_a_run_of_a_database_becomes_a_test(folder: Path, kantan_agents: Invoke) -> None:
    recorder = record_traces(folder / "traces.sqlite3")
    Agent("a", "Hi", model=ScriptedModel(["Yes"])).run("q")
    recorder.shutdown()
    save = ("traces", "save", "LAST", "--db", "traces.sqlite3", "-o", "new.json")
    outcome = kantan_agents(*save)
    assert (outcome.code, outcome.stdout, outcome.stderr) == (
        0,
        "",
        "1 model call of a written to new.json\n",
    )
    assert kantan_agents("replay", "new.json", "--agent", "app_to_replay:same").code == 0
    outcome = kantan_agents(*save)
    assert (outcome.code, "[E79]" in outcome.stderr) == (2, True)
    assert kantan_agents(*save, "--force").code == 0
    assert kantan_agents("traces", "save", "nothing", "--db", "traces.sqlite3", "-o", "x").code == 2


def test_a_run_that_is_not_recorded_completely_is_refused(folder: Path, kantan_agents: Invoke) -> None:
    recorder = record_traces(folder / "traces.sqlite3", record_requests=False)
    Agent("a", "Hi", model=ScriptedModel(["Yes"])).run("q")
    recorder.shutdown()
    outcome = kantan_agents("traces", "save", "LAST", "--db", "traces.sqlite3", "-o", "new.json")
    assert (outcome.code, "[E90]" in outcome.stderr) == (2, True)
    assert not (folder / "new.json").exists()
