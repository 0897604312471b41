"""Runs that the body of a tool starts: the body does not run in a replay, so neither do they."""

from __future__ import annotations

from typing import Any

import pytest

from kantan_agents import Agent, Recording
from kantan_agents.testing import ScriptedToolCall as Call
from tests.lab.replay.kinds_of_runs import scripted
from tests.lab.replay.taping import RAN, Case, Tapes


def asking(live: bool) -> Agent[Any]:
    inner = Agent[Any]("inner", "In", model=scripted(live, "inner"))

    async def ask(x: str) -> str:
        """Ask another agent."""
        RAN.append("ask")
        output: str = (await inner.run_async(x))["result"].final_output
        return output

    return Agent("a", "Hi", model=scripted(live, Call("ask", {"x": "z"}), "out"), tools=[ask])


async def test_a_tool_that_runs_an_agent_is_answered_whole(tapes: Tapes) -> None:
    taped = await tapes.record(Case(asking(live=True)))
    assert [run.agent for run in taped.recording.runs] == ["a", "inner"]
    assert (await tapes.replays(taped, asking(live=False), inner=False)).output == "out"


async def test_one_of_several_runs_of_a_trace(tapes: Tapes) -> None:
    from agents import trace

    from kantan_agents.errors import NotReplayableError

    def agent(name: str, live: bool) -> Agent[Any]:
        return Agent(name, "Hi", model=scripted(live, f"from {name}"))

    with trace("both"):
        await tapes.run(Case(agent("one", live=True)))
        await tapes.run(Case(agent("two", live=True)))
    tapes.recorder.force_flush()
    trace_id = tapes.store.traces(limit=1)[0].trace_id
    with pytest.raises(NotReplayableError, match=r"choose one of its runs with run=: .*\(one\), .*\(two\)"):
        Recording.from_trace(tapes.store, trace_id)
    second = tapes.store.trace(trace_id).runs[1]
    recording = Recording.from_trace(tapes.store, trace_id, run=second.id)
    from kantan_agents import replay_async

    assert (await replay_async(recording, agent("two", live=False))).output == "from two"
