"""Whatever a run does and wherever it is killed, it ends as an uninterrupted one."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kantan_agents import Agent, AgentDefinition, Durable, Next, Run, task_tool
from kantan_agents.durable.storage.steps import StepStore
from kantan_agents.testing import RecordedRequest
from tests.durable.revival import LOOK_INTERVAL, Case, KilledError, call, make, results, served

_KINDS = ("look", "fail", "forbidden", "unknown", "Task")
TURNS = st.lists(st.lists(st.sampled_from(_KINDS), min_size=1, max_size=3), max_size=3)
"""The calls of each turn, which are made in parallel."""

RUNS = st.lists(
    st.tuples(TURNS, st.integers(1, 12), st.sampled_from(["before", "after"]), st.booleans()),
    min_size=4,
    max_size=4,
)
"""Runs that are made at once: their turns, and the write at which each is killed, before or after it."""


class _Killing:
    """Kills the runs of cases at their writes, in the first process."""

    def __init__(self, cases: dict[str, Case], kills: dict[str, tuple[int, str]]) -> None:
        self.cases = cases
        self.kills = kills
        self.writes: Counter[str] = Counter()

    def around(self, write: Any) -> Any:
        """Return a write of steps with kills."""

        def killing(steps: StepStore, root: str, *arguments: str) -> Any:
            name = _NAMES.get(root, "")
            at, when = self.kills.get(name, (0, ""))
            if not at or not self.cases[name].is_first:
                return write(steps, root, *arguments)
            self.writes[name] += 1
            mine = self.writes[name]
            if mine > at or (mine == at and when == "before"):
                raise KilledError  # also what is written after the kill, by calls that are still being made
            done = write(steps, root, *arguments)
            if mine == at:
                raise KilledError
            return done

        return killing


_NAMES: dict[str, str] = {}
"""The case of each run."""


def _agent(case: Case) -> Agent[Any]:
    async def look(what: str) -> str:
        """Look."""
        await asyncio.sleep(0)
        case.effect(f"look {what}")
        return f"saw {what}"

    async def fail(what: str) -> str:
        """Fail."""
        raise ValueError(f"no {what}")

    async def forbidden(what: str) -> str:
        """Do what is forbidden."""
        case.effect(f"forbidden {what}")
        return ""

    async def note(run: Run, call_next: Next) -> None:
        _NAMES[run.id] = case.name
        await call_next(run)

    helper = AgentDefinition(name="helper", description="Helps.", system_prompt="You help.")
    return case.agent(note, Durable(), tools=[look, fail, forbidden, task_tool([helper])])


def _model(turns: list[list[str]]) -> Any:
    """Return a model whose answers depend only on the conversation."""

    def reply(request: RecordedRequest) -> Any:
        said = results(request)
        if "You help" in (request.system_instructions or ""):
            what = str(request.input[0]["content"])
            return f"helped with {said}" if said else [call("look", "h", what=what)]
        done = 0
        for number, kinds in enumerate(turns):
            if len(said) == done:
                return [_call(kind, f"c{number}_{at}") for at, kind in enumerate(kinds)]
            done += len(kinds)
        return f"Done: {said}"

    return reply


def _call(kind: str, call_id: str) -> Any:
    if kind == "Task":
        return call("Task", call_id, description="d", prompt=call_id, subagent_type="helper")
    return call(kind, call_id, what=call_id)


def _conversation(case: Case) -> list[Any]:
    requests = [one for one in (*case.requests[0], *case.requests[1]) if "You help" not in _system(one)]
    return _plain(max(requests, key=lambda one: len(one.input)).input)


def _system(request: RecordedRequest) -> str:
    return request.system_instructions or ""


def _plain(items: list[Any]) -> list[Any]:
    return [{key: value for key, value in item.items() if key != "id"} for item in items]


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(runs=RUNS)
def test_any_run_that_is_killed_anywhere_ends_as_an_uninterrupted_one(
    monkeypatch: pytest.MonkeyPatch, runs: list[tuple[list[list[str]], int, str, bool]]
) -> None:
    cases: dict[str, Case] = {}
    kills: dict[str, tuple[int, str]] = {}
    for number, (turns, at, when, streamed) in enumerate(runs):
        context = {"tool_rules": {"deny": ["forbidden"]}}
        begin = _stream if streamed else _run
        cases[f"killed{number}"] = Case(_agent, _model(turns), begin=begin, context=context)
        cases[f"whole{number}"] = Case(_agent, _model(turns), begin=begin, context=context)
        kills[f"killed{number}"] = (at, when)
    killing = _Killing(cases, kills)
    with monkeypatch.context() as patch, tempfile.TemporaryDirectory() as folder, served(cases):
        for write in ("begin", "finish"):
            patch.setattr(StepStore, write, killing.around(getattr(StepStore, write)))
        database = f"sqlite:///{Path(folder) / 'runs.sqlite3'}"
        asyncio.run(make(database, cases, None, {"look_interval": LOOK_INTERVAL}))
    for number, (turns, *_) in enumerate(runs):
        killed, whole = cases[f"killed{number}"], cases[f"whole{number}"]
        assert isinstance(killed.raised, KilledError) == (
            killing.writes[killed.name] >= kills[killed.name][0]
        )
        assert whole.raised is None
        assert killed.output == whole.output
        assert _conversation(killed) == _conversation(whole), (turns, kills[killed.name])
        assert set(killed.effects) == set(whole.effects)
        assert not [effect for effect in killed.effects if effect.startswith("forbidden")]


async def _run(agent: Agent[Any], case: Case) -> None:
    await agent.run_async(case.input, dict(case.context))


async def _stream(agent: Agent[Any], case: Case) -> None:
    async with agent.stream(case.input, dict(case.context)) as events:
        async for _ in events:
            pass
