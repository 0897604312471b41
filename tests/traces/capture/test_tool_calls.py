"""What is captured of tool calls: definitions, decisions of the rules, and calls that never reach a tool."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from agents import CustomTool, function_tool
from openai.types.responses import ResponseCustomToolCall

from kantan_agents import Agent
from kantan_agents.testing import ScriptedModel, function_call
from tests.tools.mcp.offering import Offering
from tests.traces.capture.recording import Recording


def read(path: str) -> str:
    """Read a file."""
    return f"text of {path}"


def write(path: str, text: str = "") -> str:
    """Write a file."""
    return f"{path}: {text}"


async def run(recording: Recording, *calls: Any, rules: Any = None, **options: Any) -> None:
    options = {"tools": [read, write], **options}
    context = {} if rules is None else {"tool_rules": rules}
    await Agent("a", "x", model=ScriptedModel([[*calls], "Done."]), **options).run_async("Go", context)


def reads(path: str = "a.txt") -> Any:
    return function_call("read", {"path": path}, call_id="c1")


async def test_an_allowed_call_names_the_rule_and_the_layer(recording: Recording) -> None:
    await run(recording, reads(), rules={"allow": ["read"]})
    call = recording.tool_call()
    assert call.decision is not None
    assert (call.decision.is_allowed, call.decision.rule) == (True, "allow: read")
    assert len(call.decision.layers) == 1
    assert call.decision.code is None
    assert call.output == "text of a.txt"
    assert call.error is None
    assert call.seconds > 0
    assert call.rules == recording.run().rules
    assert dict(call.rules.layers)[call.decision.layers[0]]["allow"] == ["read"]


async def test_a_refused_call_names_the_rule_and_the_code(recording: Recording) -> None:
    rules = {"allow": ["read"], "params": {"read": {"path": {"pattern": "^b"}}}}
    await run(recording, reads(), rules=rules)
    call = recording.tool_call()
    assert call.decision is not None
    assert not call.decision.is_allowed
    assert call.decision.code is not None
    assert "not allowed" in str(call.output) or call.decision.code in str(call.output)


async def test_a_call_of_a_hidden_tool_is_captured_as_refused(recording: Recording) -> None:
    await run(recording, reads(), rules={"deny": ["read"]})
    run_ = recording.run()
    (call,) = run_.tool_calls
    assert [tool.name for tool in run_.model_calls[0].request.tools] == ["write"]
    assert call.tool.name == "read"
    assert call.decision is not None
    assert (call.decision.is_allowed, call.decision.rule) == (False, "deny: read")


async def test_a_call_of_an_unknown_tool_is_captured(recording: Recording) -> None:
    await run(recording, function_call("erase", {}, call_id="c1"))
    call = recording.tool_call()
    assert (call.tool.name, call.call_id) == ("erase", "c1")
    assert call.decision is not None
    assert not call.decision.is_allowed


async def test_a_tool_that_is_switched_off_is_captured_as_refused(recording: Recording) -> None:
    off = function_tool(read, is_enabled=False)
    await run(recording, reads(), tools=[off, write])
    call = recording.tool_call()
    assert call.tool.name == "read"
    assert call.decision is not None
    assert not call.decision.is_allowed


async def test_arguments_that_are_not_json_are_captured_as_written(recording: Recording) -> None:
    await run(recording, function_call("read", "{not json", call_id="c1"))
    call = recording.tool_call()
    assert call.arguments == "{not json"
    assert call.output is not None


async def test_defaults_do_not_count_as_other_arguments(recording: Recording) -> None:
    await run(recording, function_call("write", {"path": "a"}, call_id="c1"))
    call = recording.tool_call()
    assert json.loads(call.arguments) == {"path": "a"}
    assert call.received == ()
    assert call.parameter == "path"


async def test_a_tool_of_an_mcp_server_has_the_server_and_its_own_name(recording: Recording) -> None:
    servers = [Offering("files", "read"), Offering("mail", "read")]
    called = function_call("mcp_mail__read", {"value": "x"}, call_id="c1")
    await run(recording, called, tools=[], mcp_servers=servers, tool_providers=None)
    call = recording.tool_call()
    assert (call.tool.name, call.tool.server, call.tool.name_on_server) == ("mcp_mail__read", "mail", "read")
    offered = recording.run().model_calls[0].request.tools
    assert [(tool.server, tool.name_on_server) for tool in offered] == [("files", "read"), ("mail", "read")]
    assert set(call.tool.names) >= {"mcp_mail__read"}
    assert call.origin is not None


async def test_a_custom_tool_is_captured(recording: Recording) -> None:
    async def query(_context: Any, text: str) -> str:
        return f"rows of {text}"

    custom = CustomTool(name="query", description="Ask.", on_invoke_tool=query)
    called = ResponseCustomToolCall(call_id="c0", input="select", name="query", type="custom_tool_call")
    await run(recording, called, tools=[custom])
    call = recording.tool_call()
    assert (call.tool.kind, call.tool.name, call.tool.description) == ("custom", "query", "Ask.")
    assert (call.arguments, call.output) == ("select", "rows of select")


async def test_rules_that_change_during_the_run_are_those_of_each_call(recording: Recording) -> None:
    context: dict[str, Any] = {"tool_rules": {"allow": ["read", "narrow"]}}

    def narrow() -> str:
        """Allow less."""
        context["tool_rules"] = {"allow": ["narrow"]}
        return "ok"

    model = ScriptedModel([[function_call("narrow", {}, call_id="n")], [reads()], "Done."])
    await Agent("a", "x", model=model, tools=[read, narrow]).run_async("Go", context)
    first, second = recording.run().tool_calls
    assert first.rules == recording.run().rules
    assert second.rules != first.rules
    assert first.decision is not None
    assert second.decision is not None
    assert (first.decision.is_allowed, second.decision.is_allowed) == (True, False)


async def test_a_run_that_fails_waits_for_its_other_tools_and_records_how_they_end(
    recording: Recording,
) -> None:
    has_begun, has_ended = asyncio.Event(), False

    @function_tool(failure_error_function=None)
    async def fail() -> str:
        await has_begun.wait()
        raise ValueError("broken")

    @function_tool
    async def wait() -> str:
        nonlocal has_ended
        has_begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.5)
            has_ended = True
        return "never"

    calls = [function_call("wait", {}, call_id="c1"), function_call("fail", {}, call_id="c2")]
    agent = Agent("a", "x", model=ScriptedModel([calls, "Done."]), tools=[fail, wait])
    with pytest.raises(Exception, match="broken"):
        await agent.run_async("Go")
    assert has_ended
    recorded = {call.tool.name: call for call in recording.run().tool_calls}
    assert {name: call.error.type for name, call in recorded.items() if call.error is not None} == {
        "wait": "CancelledError",
        "fail": "ValueError",
    }
