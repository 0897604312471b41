"""``kantan-agents tools what-if``: what other rules would have decided about recorded calls."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from agents import RunConfig, function_tool

from kantan_agents import Agent
from kantan_agents.testing import Reply, ScriptedModel, ScriptedToolCall
from tests.lab.rule_changes.recorded import recording


@function_tool
def bash(command: str) -> str:
    return command


@function_tool
def read(path: str) -> str:
    return path


def agent() -> Agent[Any]:
    calls = [
        ScriptedToolCall("read", {"path": "a"}, id="c0"),
        ScriptedToolCall("bash", {"command": "git status"}, id="c1"),
        ScriptedToolCall("bash", {"command": "rm x"}, id="c2"),
        ScriptedToolCall("nothing", id="c3"),
    ]
    model = ScriptedModel([*(Reply(tool_calls=[call]) for call in calls), "Done."])
    return Agent("coder", "Code.", model=model, tools=[bash, read], tool_providers=None)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs: one without rules, and one that may not call bash."""
    path = tmp_path_factory.mktemp("recorded") / "traces.sqlite3"

    async def record() -> None:
        with recording(path) as file:
            await file.run(agent())
            await file.run(agent(), {"deny": ["bash"]})

    asyncio.run(record())
    return path


@pytest.fixture
def ask(kantan_agents: Any, recorded: Path, tmp_path: Path) -> Any:
    def run(rules: Any, *options: str, db: Path = recorded) -> Any:
        file = tmp_path / "rules.json"
        file.write_text(rules if isinstance(rules, str) else json.dumps(rules))
        return kantan_agents("tools", "what-if", str(file), "--db", str(db), *options)

    return run


def test_flips_are_listed_with_rule_layer_agent_and_arguments(ask: Any) -> None:
    outcome = ask({"allow": ["read", "bash(git:*)"]}, "--last", "30d")
    assert (outcome.code, outcome.stderr) == (1, "")
    lines = outcome.stdout.splitlines()
    assert lines[0] == "6 calls of 2 runs judged, 2 decisions flip: 1 newly denied, 1 newly allowed"
    refused, allowed = outcome.stdout.index("Newly denied"), outcome.stdout.index("Newly allowed")
    for part in ("bash", "coder", "allow has no entry", "explicit", '{"command": "rm x"}'):
        assert part in outcome.stdout[refused:allowed]
    assert '{"command": "git status"}' in outcome.stdout[allowed:]
    assert "deny: bash" in outcome.stdout[allowed:]
    assert "2 invalid calls, which fail whatever the rules say" in outcome.stdout


def test_runs_of_experiments_are_left_out(ask: Any, tmp_path: Path) -> None:
    config = RunConfig(trace_metadata={"kantan_agents_experiment": "e"})

    async def record() -> None:
        with recording(tmp_path / "t.sqlite3") as file:
            await file.run(agent())
            await agent().run_async("Go", {}, run_config=config)

    asyncio.run(record())
    every, made = (), ("--meta", "kantan_agents_experiment=e")
    for options in (every, made):
        data = json.loads(ask({"deny": ["bash"]}, "--json", *options, db=tmp_path / "t.sqlite3").stdout)
        assert (data["runs"], len(data["newly_denied"])) == (1, 2)


def test_json_has_everything(ask: Any) -> None:
    outcome = ask({"deny": ["bash"]}, "--json")
    assert outcome.code == 1
    data = json.loads(outcome.stdout)
    assert (data["judged"], data["runs"], data["invalid"], data["after_flip"]) == (6, 2, 2, 1)
    first, second = data["newly_denied"]
    assert (first["is_first"], second["is_first"]) == (True, False)
    assert first["before"] == {"allowed": True, "rule": None, "layers": [], "code": None}
    assert first["after"] == {"allowed": False, "rule": "deny: bash", "layers": ["explicit"], "code": "E8"}
    assert data["by_tool"] == {"bash": {"newly_denied": 2, "newly_allowed": 0}}
    assert data["by_agent"] == {"coder": {"newly_denied": 2, "newly_allowed": 0}}
    assert (data["newly_allowed"], data["unjudged"], data["incomplete"]) == ([], [], [])


def test_calls_after_another_flip_are_marked(ask: Any) -> None:
    outcome = ask({"deny": ["bash"]})
    assert outcome.stdout.count("*") == 2  # one call, and what the mark means
    assert "* follows another flip of its run" in outcome.stdout


def test_without_flips_the_exit_code_is_0(ask: Any) -> None:
    outcome = ask({"allow": ["read", "bash"]}, "--no-errors", "--layer", "base")
    assert outcome.code == 0
    assert outcome.stdout.splitlines()[0] == "6 calls of 2 runs judged, no decision flips"


def test_filters_choose_the_runs(ask: Any) -> None:
    outcome = ask({}, "--denied", "--json")
    assert {flip["call_id"] for flip in json.loads(outcome.stdout)["newly_allowed"]} == {"c1", "c2"}
    ask({}, "--agent", "nobody").is_one_error("[E99] No recorded tool call: there is no recorded run")
    ask({}, "--until", "2020-01-01").is_one_error("[E99] No recorded tool call: there is no recorded run")


def test_standard_input_can_be_the_rules(kantan_agents: Any, recorded: Path) -> None:
    outcome = kantan_agents("tools", "what-if", "-", "--db", str(recorded), stdin=b'{"deny": ["read"]}')
    assert outcome.code == 1
    assert "deny: read" in outcome.stdout


def test_bad_input_is_one_line_with_a_code(ask: Any, tmp_path: Path) -> None:
    ask({"alow": []}).is_one_error("[E20] Invalid tool rules: alow: unknown key")
    ask("no JSON").is_one_error("[E79]")
    ask({}, "--layer", "provider x").is_one_error("[E75] Invalid option layer: no recorded call has a layer")
    ask({}, "--last", "soon").is_one_error(
        "[E75] Invalid option --last: must be a number with s, m, h, d or w"
    )
    ask({}, "--last", "3d", "--since", "3d").is_one_error("[E75] Invalid option --last: cannot be combined")
    ask({}, db=tmp_path / "none.sqlite3").is_one_error("[E60]")
    foreign = tmp_path / "foreign.sqlite3"
    foreign.write_bytes(b"not a database, but long enough to be read as one " * 40)
    ask({}, db=foreign).is_one_error("[E60]")


def test_a_database_without_records_has_no_recorded_call(ask: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite3"

    async def record() -> None:
        with recording(path, record_requests=False) as file:
            await file.run(agent())

    asyncio.run(record())
    ask({}, db=path).is_one_error("[E99] No recorded tool call: 1 traces are not recorded completely")


def test_a_damaged_record_is_named(ask: Any, recorded: Path, tmp_path: Path) -> None:
    import sqlite3
    from contextlib import closing

    damaged = tmp_path / "damaged.sqlite3"
    with closing(sqlite3.connect(recorded)) as source, closing(sqlite3.connect(damaged)) as target:
        source.backup(target)
        target.execute(
            "UPDATE kantan_agents_runs SET body = '{}' WHERE id = (SELECT min(id) FROM kantan_agents_runs)"
        )
        target.commit()
    outcome = ask({"deny": ["read"]}, db=damaged)
    assert outcome.code == 1
    assert "1 trace recorded incompletely" in outcome.stdout
    assert "cannot be read: it is damaged" in outcome.stdout


def test_the_runs_of_the_demo_can_be_asked_about(kantan_agents: Any, ask: Any, tmp_path: Path) -> None:
    path = tmp_path / "demo.sqlite3"
    assert kantan_agents("demo", "--db", str(path)).code == 0
    outcome = ask({"deny": ["look_up_order"]}, "--last", "30d", db=path)
    assert outcome.code == 1
    assert outcome.stdout.startswith("1 call of 2 runs judged, 1 decision flips: 1 newly denied")
