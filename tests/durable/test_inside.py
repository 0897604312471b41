"""Durable runs with others inside them: agents as tools, hand-offs, guardrails, tools of MCP servers."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import agents
import anyio
import pytest
from agents.mcp import MCPServerStdio

from kantan_agents import Agent
from kantan_agents.core.interception import current_tool_call
from kantan_agents.testing import RecordedRequest
from tests.durable.revival import LOOK_INTERVAL, Case, KilledError, call, make, results, revive, served
from tests.programs import Preloaded

_SERVER = Path(__file__).parents[1] / "tools" / "mcp_server.py"


def _pay(case: Case) -> Any:
    async def pay(amount: int) -> str:
        """Pay."""
        case.effect(f"pay {amount}")
        case.die()
        return f"paid {amount}"

    return pay


def _look(case: Case) -> Any:
    async def look(what: str) -> str:
        """Look."""
        case.effect(f"look {what}")
        return f"saw {what}"

    return look


def _inner(case: Case, name: str, *tools: Any) -> Agent[Any]:
    return Agent(name, f"You are {name}.", model=case.server.bundle(), tools=tools, tool_providers=None)


def _agents_as_tools(case: Case) -> Agent[Any]:
    helper = _inner(case, "helper", _look(case))
    tool = helper.as_tool(tool_name="ask", tool_description="Ask.")
    return case.agent(tools=[tool, _pay(case)])


def _sdk_agents_as_tools(case: Case) -> Agent[Any]:
    helper = agents.Agent(
        "helper",
        instructions="You are helper.",
        tools=[agents.function_tool(_look(case))],
        model=_sdk_model(case),
    )
    return case.agent(tools=[helper.as_tool(tool_name="ask", tool_description="Ask."), _pay(case)])


def _sdk_model(case: Case) -> Any:
    return agents.OpenAIResponsesModel("gpt-6.1-terra", case.server.bundle().client)


def _asks(request: RecordedRequest) -> Any:
    said = results(request)
    if "You are helper" in (request.system_instructions or ""):
        who = str(request.input[0]["content"])
        return f"helped {who} with {said[0]}" if said else [call("look", f"h_{who}", what=who)]
    if not said:
        return [call("ask", "c1", input="one"), call("ask", "c2", input="two")]
    return [call("pay", "c3", amount=3)] if len(said) == 2 else f"Done: {said}"


def _handing_off(case: Case) -> Agent[Any]:
    second = _inner(case, "second", _look(case), _pay(case))
    first = case.agent(tools=[_look(case)], handoffs=[second])
    second.handoffs.append(first)
    return first


def _hands_off(request: RecordedRequest) -> Any:
    said = results(request)
    turns: list[Any] = [
        [call("look", "c1", what="a")],
        [call("transfer_to_second", "c2")],
        [call("look", "c3", what="b")],
        [call("transfer_to_handing_off", "c4")],
        [call("transfer_to_second", "c5")],
        [call("pay", "c6", amount=3)],
        f"Done: {said[-1:]}",
    ]
    return turns[len(said)]


def _guarded(case: Case) -> Agent[Any]:
    checker = _inner(case, "checker")

    @agents.input_guardrail
    async def check(context: Any, agent: Any, input: Any) -> agents.GuardrailFunctionOutput:
        context = await checker.run_async("check")
        case.effect(f"checked {context['result'].final_output}")
        checked.set()
        return agents.GuardrailFunctionOutput(None, tripwire_triggered=False)

    async def pay(amount: int) -> str:
        """Pay, after the guardrail beside this call, so that the process dies after both."""
        await checked.wait()
        return str(await pay_now(amount))

    checked = anyio.Event()
    pay_now = _pay(case)
    return case.agent(tools=[pay], input_guardrails=[check])


def _checks(request: RecordedRequest) -> Any:
    if "You are checker" in (request.system_instructions or ""):
        return "fine"
    return "Done." if results(request) else [call("pay", "c1", amount=3)]


def _tool_with_run(case: Case) -> Agent[Any]:
    helper = _inner(case, "helper", _look(case))

    async def ask(who: str) -> str:
        """Ask."""
        context = await helper.run_async(who)
        return str(context["result"].final_output)

    return case.agent(tools=[ask, _pay(case)])


def _asks_by_tool(request: RecordedRequest) -> Any:
    said = results(request)
    if "You are helper" in (request.system_instructions or ""):
        return "helped" if said else [call("look", "h1", what="x")]
    return [[call("ask", "c1", who="x")], [call("pay", "c2", amount=3)], "Done."][len(said)]


def _parallel(case: Case) -> Agent[Any]:
    async def fail() -> str:
        """Fail."""
        case.effect("fail")
        raise ValueError("no")

    return case.agent(tools=[fail, _look(case), _pay(case)])


def _asked_at_once(case: Case) -> Agent[Any]:
    async def look(what: str) -> str:
        """Look."""
        current = current_tool_call.get()
        assert current is not None
        case.effect(f"look {what}")
        case.keys.append((what, current.idempotency_key.split("-", 1)[1]))
        if what == "two":
            while case.is_first and not _has_finished(case):  # noqa: ASYNC110 - the model is in another thread
                await asyncio.sleep(0.01)
            case.die()
        return f"saw {what}"

    helper = agents.Agent(
        "helper",
        instructions="You are helper.",
        tools=[agents.function_tool(look)],
        model=_sdk_model(case),
    )
    return case.agent(tools=[helper.as_tool(tool_name="ask", tool_description="Ask.")])


def _has_finished(case: Case) -> bool:
    return any("saw one" in results(request) for request in case.requests[0])


def _with_equal_ids(request: RecordedRequest) -> Any:
    said = results(request)
    if "You are helper" in (request.system_instructions or ""):
        who = str(request.input[0]["content"])
        return f"helped {who} with {said}" if said else [call("look", "call_0", what=who)]
    if not said:
        return [call("ask", "c1", input="one"), call("ask", "c2", input="two")]
    return f"Done: {said}"


CASES = {
    "asked_at_once": Case(_asked_at_once, _with_equal_ids),
    "agents_as_tools": Case(_agents_as_tools, _asks),
    "sdk_agents_as_tools": Case(_sdk_agents_as_tools, _asks),
    "handing_off": Case(_handing_off, _hands_off),
    "guarded": Case(_guarded, _checks),
    "tool_with_run": Case(_tool_with_run, _asks_by_tool),
    "parallel": Case(
        _parallel,
        {
            0: [call("fail", "c1"), call("look", "c2", what="a"), call("look", "c3", what="b")],
            3: [call("pay", "c4", amount=3), call("look", "c5", what="c")],
            5: "Done.",
        },
    ),
}


@pytest.fixture(scope="module", autouse=True)
def _made(tmp_path_factory: pytest.TempPathFactory) -> None:
    revive(tmp_path_factory.mktemp("inside"), CASES)


def test_agents_of_the_sdk_that_are_asked_at_once_get_their_own_answers_again() -> None:
    case = CASES["asked_at_once"]
    assert isinstance(case.raised, KilledError)
    assert case.output == "Done: [\"helped one with ['saw one']\", \"helped two with ['saw two']\"]"
    assert sorted(case.effects) == ["look one", "look two", "look two"]
    # The same for the call that was made again, although the server gave both one id.
    (one, key), two, again = sorted(case.keys)
    assert (one, two[0]) == ("one", "two")
    assert key.startswith("c1/call_0")
    assert two[1].startswith("c2/call_0")
    assert again == two


@pytest.mark.parametrize("name", ["agents_as_tools", "sdk_agents_as_tools"])
def test_agents_as_tools_that_have_finished_are_not_asked_again(name: str) -> None:
    case = CASES[name]
    assert case.output == "Done: ['helped one with saw one', 'helped two with saw two', 'paid 3']"
    assert sorted(case.effects) == ["look one", "look two", "pay 3", "pay 3"]
    assert len(case.requests[1]) == 1


def test_hand_offs_in_a_cycle_are_followed_again() -> None:
    case = CASES["handing_off"]
    assert case.output == "Done: ['paid 3']"
    assert case.effects == ["look a", "look b", "pay 3", "pay 3"]
    assert [request.system_instructions for request in case.requests[1]] == ["You are second."]
    assert len(case.requests[0]) == 6


def test_the_run_of_a_guardrail_is_made_again() -> None:
    case = CASES["guarded"]
    assert case.output == "Done."
    assert sorted(case.effects) == ["checked fine", "checked fine", "pay 3", "pay 3"]


def test_a_tool_that_has_run_another_agent_is_not_made_again() -> None:
    case = CASES["tool_with_run"]
    assert case.output == "Done."
    assert case.effects == ["look x", "pay 3", "pay 3"]


def test_a_failed_call_among_parallel_ones_is_not_made_again() -> None:
    case = CASES["parallel"]
    assert case.output == "Done."
    assert case.effects.count("fail") == 1
    assert case.answers[0].startswith("An error occurred while running the tool. Please try again.")
    assert case.answers[1:] == ["saw a", "saw b", "paid 3", "saw c"]


def test_a_tool_of_a_server_is_called_once_and_a_server_that_is_down_may_be_left_out(
    tmp_path: Path, preloaded: Preloaded
) -> None:
    calls = tmp_path / "calls"
    replies = {0: [call("read", "c1", path="a")], 1: [call("pay", "c2", amount=3)], 2: "Done."}
    command, *arguments = preloaded.command(_SERVER, "stdio")
    params: Any = {"command": command, "args": arguments, "env": {**os.environ, "CALLS": str(calls)}}
    down: Any = {"command": "false"}

    async def made() -> None:
        async with MCPServerStdio(params, client_session_timeout_seconds=60) as server:

            def up(case: Case) -> Agent[Any]:
                return case.agent(tools=[_pay(case)], mcp_servers=[server])

            def left_out(case: Case) -> Agent[Any]:
                servers = [server if case.is_first else MCPServerStdio(down)]
                return case.agent(tools=[_pay(case)], mcp_servers=servers, on_mcp_failure="continue")

            cases.update(up=Case(up, replies), left_out=Case(left_out, replies))
            with served(cases):
                await make(
                    f"sqlite:///{tmp_path / 'runs.sqlite3'}", cases, None, {"look_interval": LOOK_INTERVAL}
                )

    cases: dict[str, Case] = {}
    asyncio.run(made())
    assert calls.read_text().splitlines() == ["read a 10", "read a 10"]  # of two runs
    for case in cases.values():
        assert case.output == "Done."
        assert case.effects == ["pay 3", "pay 3"]
        assert "content of a" in case.answers[0]  # also without the server: it is stored
