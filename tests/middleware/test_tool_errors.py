from __future__ import annotations

import json
from typing import Any

import pytest
from agents import Agent as SDKAgent
from agents import UserError, function_tool

from kantan_agents import Agent, Middleware, ToolCall
from kantan_agents.core.events import ToolCallFinished
from kantan_agents.errors import InvalidOptionError, ToolNotAllowedError
from kantan_agents.middleware import Budget, ToolErrors
from kantan_agents.testing import (
    OfflineServer,
    ScriptedModel,
    ScriptedToolCall,
    assistant_message,
    function_call,
)

SECRET = "sk-abcdefghijklmnop"


class DiskError(Exception):
    pass


def read_file(path: str) -> str:
    """Read a file."""
    raise DiskError(f"cannot read /srv/private/{path} with key {SECRET}")


def calling(name: str = "read_file", arguments: Any = None) -> ScriptedModel:
    given = {"path": "a.txt"} if arguments is None else arguments
    return ScriptedModel([[function_call(name, given, call_id="1")], [assistant_message("Done.")]])


def tool_result(model: Any) -> str:
    """Return the tool result that the model received."""
    return str(model.last_call.input[-1]["output"])


async def run(*middleware: Any, tools: Any = (read_file,), **script: Any) -> str:
    model = calling(**script)
    await Agent("a", "x", model=model, tools=tools, middleware=middleware).run_async("Go")
    return tool_result(model)


async def test_by_default_the_model_receives_nothing_from_the_exception() -> None:
    text = await run(ToolErrors())
    assert text == "The tool read_file failed. There is no result."


async def test_without_it_the_model_receives_the_message_of_the_sdk() -> None:
    assert "An error occurred while running the tool" in await run()


class Passing(Middleware):
    async def tool_call(self, call: Any, call_next: Any) -> Any:
        return await call_next(call)


@pytest.mark.parametrize("arguments", [None, "no json", '{"no json'])
async def test_a_middleware_that_does_nothing_changes_nothing(arguments: Any) -> None:
    assert await run(Passing(), arguments=arguments) == await run(arguments=arguments)


async def test_a_middleware_that_does_nothing_keeps_the_failure_function_of_a_tool() -> None:
    @function_tool(failure_error_function=lambda _context, error: f"own: {type(error).__name__}")
    def moody() -> str:
        raise DiskError

    assert await run(Passing(), tools=[moody], name="moody", arguments={}) == "own: DiskError"
    assert "failed" in await run(ToolErrors(), tools=[moody], name="moody", arguments={})


async def test_the_message_is_masked_and_truncated_and_has_no_traceback() -> None:
    text = await run(ToolErrors("message"))
    assert text.startswith("DiskError: cannot read /srv/private/a.txt with key ")
    assert SECRET not in text
    assert "Traceback" not in text

    def talk() -> str:
        raise DiskError("x" * 100_000)

    assert len(await run(ToolErrors("message"), tools=[talk], name="talk", arguments={})) == 2000


async def test_a_function_returns_the_text() -> None:
    seen: list[ToolCall] = []

    def describe(error: Exception, call: ToolCall) -> str:
        seen.append(call)
        return f"{type(error).__name__} in {call.name}"

    async def describe_async(error: Exception, call: ToolCall) -> str:
        return describe(error, call)

    assert await run(ToolErrors(describe)) == "DiskError in read_file"
    assert await run(ToolErrors(describe_async)) == "DiskError in read_file"
    assert json.loads(seen[0].arguments) == {"path": "a.txt"}


async def test_raise_ends_the_run_with_the_tools_own_exception() -> None:
    with pytest.raises(DiskError) as caught:
        await run(ToolErrors("raise"))
    assert caught.value.kantan_run.agent.name == "a"  # type: ignore[attr-defined]


async def test_raise_keeps_the_cause_of_the_exception() -> None:
    def read() -> str:
        """Read."""
        raise DiskError("unreadable") from OSError("sector 7")

    with pytest.raises(DiskError) as raised:
        await run(ToolErrors("raise"), tools=[read], name="read", arguments={})
    assert repr(raised.value.__cause__) == "OSError('sector 7')"


async def test_raise_in_an_agent_used_as_a_tool_ends_the_run() -> None:
    inner = SDKAgent(name="inner", model=calling(), tools=[function_tool(read_file)])
    model = calling("ask_inner", {"input": "Go"})
    agent = Agent(
        "a", "x", model=model, tools=[inner.as_tool("ask_inner", "Ask.")], middleware=[ToolErrors("raise")]
    )
    with pytest.raises(DiskError):
        await agent.run_async("Go")
    assert len(model.calls) == 1


async def test_raise_ends_a_streamed_run() -> None:
    agent = Agent("a", "x", model=calling(), tools=[read_file], middleware=[ToolErrors("raise")])
    ended: list[ToolCallFinished] = []
    async with agent.stream("Go") as stream:
        with pytest.raises(DiskError):
            async for event in stream:
                if isinstance(event, ToolCallFinished):
                    ended.append(event)
    assert [event.outcome for event in ended] == ["failed"]


@pytest.mark.parametrize(
    ("middleware", "rules", "expected"),
    [
        (ToolErrors(), {}, "The tool measure failed. There is no result."),
        (Budget(per_tool={"measure": 0}), {}, "may be called 0 times"),
        (Passing(), {}, "An error occurred"),
        (Passing(), {"params": {"measure": {"city": {"enum": ["Rome"]}}}}, "[E12]"),
    ],
)
async def test_a_text_in_place_of_a_result_is_not_checked_against_the_declared_output(
    middleware: Any, rules: Any, expected: str
) -> None:
    schema = {"type": "object", "properties": {"degrees": {"type": "integer"}}, "required": ["degrees"]}

    @function_tool(output_json_schema=schema)
    def measure(city: str) -> Any:
        raise DiskError

    model = calling("measure", {"city": "Oslo"})
    agent = Agent("a", "x", model=model, tools=[measure], middleware=[middleware])
    await agent.run_async("Go", {"tool_rules": rules})
    assert expected in tool_result(model)


async def test_a_result_is_still_checked_against_the_declared_output() -> None:
    schema = {"type": "object", "properties": {"degrees": {"type": "integer"}}, "required": ["degrees"]}

    @function_tool(output_json_schema=schema)
    def measure(city: str) -> Any:
        return {"degrees": 7} if city == "Oslo" else "warm"

    arguments = {"city": "Oslo"}
    assert "7" in await run(ToolErrors(), tools=[measure], name="measure", arguments=arguments)
    with pytest.raises(UserError):
        await run(ToolErrors(), tools=[measure], name="measure", arguments={"city": "Rome"})


async def test_invalid_arguments_have_a_text_of_their_own() -> None:
    text = await run(ToolErrors(), arguments='{"no json')
    assert text == "The tool read_file cannot take these arguments. Correct them and call it again."


async def test_a_refusal_by_the_rules_is_not_changed() -> None:
    model = calling()
    agent = Agent("a", "x", model=model, tools=[read_file], middleware=[ToolErrors()])
    await agent.run_async("Go", {"tool_rules": {"deny": ["read_file"]}})
    assert "[E8]" in tool_result(model)
    agent = Agent(
        "a", "x", model=calling(), tools=[read_file], middleware=[ToolErrors()], on_rule_violation="raise"
    )
    with pytest.raises(ToolNotAllowedError):
        await agent.run_async("Go", {"tool_rules": {"deny": ["read_file"]}})


class Broken(Middleware):
    async def tool_call(self, call: Any, call_next: Any) -> Any:
        raise LookupError("broken")


async def test_an_error_of_another_middleware_ends_the_run() -> None:
    with pytest.raises(LookupError, match="broken"):
        await run(ToolErrors(), Broken())


async def test_it_applies_to_handoff_targets() -> None:
    model = calling()
    target = Agent("b", "x", model=model, tools=[read_file])
    first = ScriptedModel([[function_call("transfer_to_b", {}, call_id="0")]])
    await Agent("a", "x", model=first, handoffs=[target], middleware=[ToolErrors()]).run_async("Go")
    assert tool_result(model) == "The tool read_file failed. There is no result."


async def test_a_failing_tool_is_marked_in_the_trace(traces: Any) -> None:
    await run(ToolErrors())
    (span,) = traces.spans(span_type="function")
    assert "Error running tool" in json.dumps(span.error)


async def test_over_http_the_secret_never_leaves() -> None:
    with OfflineServer([ScriptedToolCall("read_file", {"path": "a"}), "Sorry."]) as server:
        agent = Agent("a", "x", model=server.bundle(), tools=[read_file], middleware=[ToolErrors()])
        await agent.run_async("Go")
    assert SECRET not in json.dumps([request.body for request in server.requests])


@pytest.mark.parametrize("policy", ["quiet", None, 3])
def test_a_wrong_policy_is_an_error(policy: Any) -> None:
    with pytest.raises(InvalidOptionError, match="policy"):
        ToolErrors(policy)


async def test_a_policy_that_returns_no_text_is_an_error() -> None:
    with pytest.raises(InvalidOptionError, match="str"):
        await run(ToolErrors(lambda _error, _call: None))  # type: ignore[arg-type,return-value]
