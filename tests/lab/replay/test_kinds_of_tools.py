"""Tools that are not functions, guardrails of tools, and those that cannot be replayed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agents import (
    ComputerTool,
    GuardrailFunctionOutput,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolOutputGuardrail,
    function_tool,
    input_guardrail,
    output_guardrail,
)

from kantan_agents import Agent, replay_async
from kantan_agents.errors import NotReplayableError
from kantan_agents.testing import ScriptedToolCall as Call
from tests.core.interception.test_tool_calls import kinds
from tests.lab.replay.kinds_of_runs import scripted, tool
from tests.lab.replay.taping import RAN, Case, Tapes

# The SDK's scripted model cannot stream calls of the other two.
STREAMED = [("shell", True), ("apply_patch", True)]


@pytest.mark.parametrize(
    ("kind", "streamed"),
    [*((kind, False) for kind in ("local_shell", "shell", "apply_patch", "query")), *STREAMED],
)
async def test_tools_of_other_kinds_do_not_run(tapes: Tapes, kind: str, streamed: bool) -> None:
    done: list[Any] = []

    def agent(live: bool) -> Agent[Any]:
        made, call, _ = kinds(done)[kind]
        return Agent("a", "Hi", model=scripted(live, [call], "ok"), tools=[made])

    taped = await tapes.record(Case(agent(live=True)), streamed=streamed)
    assert len(done) == 1
    assert (await tapes.replays(taped, agent(live=False))).output == "ok"
    assert len(done) == 1


async def test_a_computer_is_refused(tapes: Tapes) -> None:
    made, call, _ = kinds([])["computer"]
    taped = await tapes.record(Case(Agent("a", "Hi", model=scripted(True, [call], "ok"), tools=[made])))
    with pytest.raises(NotReplayableError, match=r"E93.*screen"):
        await replay_async(taped.recording, Agent("a", "Hi", model=scripted(False), tools=[made]))


@pytest.mark.parametrize("ignore", [(), "tools"])
async def test_a_computer_that_the_recorded_run_did_not_have_is_not_started(
    tapes: Tapes, ignore: Any
) -> None:
    started: list[str] = []

    def start(*, run_context: Any) -> Any:
        del run_context
        started.append("computer")
        raise RuntimeError

    taped = await tapes.record(Case(Agent("a", "Hi", model=scripted(True, "ok"))))
    agent = Agent("a", "Hi", model=scripted(False), tools=[ComputerTool(start)])
    with pytest.raises(NotReplayableError, match=r"E93.*computer"):
        await replay_async(taped.recording, agent, ignore=ignore)
    assert not started


@pytest.mark.parametrize("place", ["input", "output"])
@pytest.mark.parametrize("behavior", ["allow", "reject", "raise"])
async def test_guardrails_of_tools_run_again(tapes: Tapes, place: str, behavior: str) -> None:
    async def check(data: Any) -> Any:
        if behavior == "reject":
            return ToolGuardrailFunctionOutput.reject_content("rejected")
        if behavior == "raise":
            return ToolGuardrailFunctionOutput.raise_exception()
        return ToolGuardrailFunctionOutput.allow()

    def agent(live: bool) -> Agent[Any]:
        made = function_tool(tool("t1"))
        if place == "input":
            made.tool_input_guardrails = [ToolInputGuardrail(check)]
        else:
            made.tool_output_guardrails = [ToolOutputGuardrail(check)]
        return Agent("a", "Hi", model=scripted(live, Call("t1", {}), "ok"), tools=[made])

    taped = await tapes.record(Case(agent(live=True)))
    replayed = await tapes.replays(taped, agent(live=False))
    assert (replayed.error is None) == (behavior != "raise")


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("trips", [None, "input", "output"])
async def test_guardrails_of_agents_run_again(tapes: Tapes, trips: str | None, streamed: bool) -> None:
    @input_guardrail
    async def reads(context: Any, agent: Any, given: Any) -> Any:
        return GuardrailFunctionOutput(None, tripwire_triggered=trips == "input")

    @output_guardrail
    async def writes(context: Any, agent: Any, output: Any) -> Any:
        return GuardrailFunctionOutput(None, tripwire_triggered=trips == "output")

    def agent(live: bool) -> Agent[Any]:
        model = scripted(live, Call("t1", {}), "ok")
        guardrails: Any = {"input_guardrails": [reads], "output_guardrails": [writes]}
        return Agent("a", "Hi", model=model, tools=[tool("t1")], **guardrails)

    taped = await tapes.record(Case(agent(live=True)), streamed=streamed)
    try:
        replayed = await tapes.replays(taped, agent(live=False))
    except NotReplayableError:
        assert trips == "input"
    else:
        assert (replayed.error is None) == (trips is None)


async def test_a_tool_that_timed_out_is_refused(tapes: Tapes) -> None:
    async def slow() -> str:
        """Take long."""
        RAN.append("slow")
        await asyncio.sleep(3600)
        return "late"

    def agent(live: bool) -> Agent[Any]:
        made = function_tool(slow, timeout=0.01)
        return Agent("a", "Hi", model=scripted(live, Call("slow", {}), "ok"), tools=[made])

    taped = await tapes.record(Case(agent(live=True)))
    with pytest.raises(NotReplayableError, match="'slow' was cancelled or timed out"):
        await replay_async(taped.recording, agent(live=False))


@pytest.mark.parametrize("names", [("first", "second"), ("second", "first")])
async def test_the_first_of_several_broken_rules_is_the_same(tapes: Tapes, names: tuple[str, str]) -> None:
    def pay(first: int, second: int) -> str:
        """Pay."""
        return f"paid {first} {second}"

    def case(order: tuple[str, str], *, live: bool = True) -> Case:
        model = scripted(live, [Call("pay", {"first": 9, "second": 9})], "ok")
        params = {"pay": {name: {"maximum": 1} for name in order}}
        return Case(Agent("a", "Hi", model=model, tools=[pay]), context={"tool_rules": {"params": params}})

    # Rules that differ in their order only are in the database already.
    await tapes.record(case((names[1], names[0])))
    taped = await tapes.record(case(names))
    assert f"pay.{names[0]}" in str(taped.recording.root.model_calls[1].request.input)
    await tapes.replays(taped, case(names, live=False).agent)
