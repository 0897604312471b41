"""``SDKAgent`` keeps plain tools outside ``Agent.tools``; everything the SDK does with tools still works."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import agents
import pytest
from agents import (
    FunctionTool,
    ModelSettings,
    RunContextWrapper,
    RunState,
    WebSearchTool,
)

from kantan_agents import Agent
from kantan_agents.agent.bridge import QuickSettings, SDKAgent
from kantan_agents.testing import ScriptedModel, assistant_message, function_call


def tool_named(name: Any, log: Any = None, **options: Any) -> Any:
    async def tool(value: str = "") -> str:
        """Do it."""
        if log is not None:
            log.append((name, value))
        return f"{name} did {value}"

    made = agents.function_tool(tool, name_override=name)
    for option, setting in options.items():
        setattr(made, option, setting)
    return made


def calling(name: Any, then: Any = "done", **arguments: Any) -> Any:
    return ScriptedModel([[function_call(name, arguments, call_id="c1")], [assistant_message(then)]])


async def shown(agent: Any, context: Any = None) -> Any:
    tools = await agent.sdk_agent.get_all_tools(RunContextWrapper(context or {}))
    return [tool.name for tool in tools]


async def test_plain_function_tools_are_held_outside_the_sdk_agent_and_all_others_stay_on_it() -> None:
    inside = [
        tool_named("switched", is_enabled=lambda ctx, agent: True),
        tool_named("deferred", defer_loading=True),
        Agent("nested", "x", model=ScriptedModel()).sdk_agent.as_tool("nested", "A nested agent."),
    ]
    agent = Agent("a", "b", tools=[tool_named("plain"), *inside, WebSearchTool()])
    assert {tool.name for tool in agent.sdk_agent.tools} == {
        "switched",
        "deferred",
        "nested",
        "web_search",
    }
    assert (await shown(agent))[0] == "plain"


async def test_tools_are_shown_in_the_order_given() -> None:
    tools = [
        WebSearchTool(),
        tool_named("b"),
        tool_named("a", is_enabled=lambda c, a: True),
        tool_named("c"),
    ]
    assert await shown(Agent("a", "b", tools=tools)) == ["web_search", "b", "a", "c"]


async def test_the_last_of_two_tools_with_the_same_name_wins() -> None:
    log: list = []
    first, second = tool_named("t"), tool_named("t", log)
    model = calling("t", value="x")
    await Agent("a", "b", tools=[first, second], model=model).run_async("hi")
    assert log == [("t", "x")]


async def test_a_guarded_tool_keeps_the_sdks_attributes() -> None:
    def guardrail(data: Any) -> Any:
        return agents.ToolGuardrailFunctionOutput.allow()

    original = tool_named(
        "t",
        needs_approval=True,
        timeout_seconds=3.0,
        tool_input_guardrails=[agents.tool_input_guardrail(guardrail)],
    )
    (kept,) = await Agent("a", "b", tools=[original]).sdk_agent.get_all_tools(RunContextWrapper({}))
    assert isinstance(kept, FunctionTool)
    # The guard calls the executor and the function that answers failures.
    called = {"on_invoke_tool", "_failure_error_function", "_use_default_failure_error_function"}
    for field in dataclasses.fields(original):
        if field.name not in called:
            assert getattr(kept, field.name) == getattr(original, field.name), field.name


async def test_a_failing_tool_is_reported_to_the_model_as_the_sdk_does() -> None:
    def broken() -> str:
        """Fail."""
        raise ValueError("no luck")

    model = calling("broken")
    await Agent("a", "b", tools=[broken], model=model).run_async("hi")
    assert "error occurred while running the tool" in str(model.last_call.input[-1])


async def test_a_guarded_tool_keeps_its_timeout() -> None:
    import anyio

    async def slow() -> str:
        """Wait."""
        await anyio.sleep(60)
        return "never"

    tool = agents.function_tool(slow)
    tool.timeout_seconds = 0.01
    model = calling("slow")
    await Agent("a", "b", tools=[tool], model=model).run_async("hi")
    assert "timed out" in str(model.last_call.input[-1])


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("approve", [True, False])
async def test_approval_and_resume_in_memory_and_from_json(as_json: Any, approve: Any) -> None:
    log: list = []
    model = calling("danger", value="x")
    tool = tool_named("danger", log, needs_approval=True)
    agent = Agent("a", "Hi {{ $ctx.who }}", tools=[tool, tool_named("other")], model=model)
    context = await agent.run_async("do it", {"who": "Bo"})
    paused = context["result"]
    assert len(paused.interruptions) == 1
    assert (log, context["history"]) == ([], [])
    state = paused.to_state()
    if as_json:
        state = await RunState.from_json(agent.sdk_agent, json.loads(json.dumps(state.to_json())))
        context = None
    (waiting,) = state.get_interruptions()
    if approve:
        state.approve(waiting)
    else:
        state.reject(waiting)
    resumed = await agent.run_async(state, context)
    assert resumed["result"].final_output == "done"
    assert log == ([("danger", "x")] if approve else [])
    assert [entry["text"] for entry in resumed["history"]] == ["do it", "done"]
    assert model.last_call.system_instructions == "Hi Bo"


async def test_a_resumed_state_without_a_context_uses_its_own() -> None:
    model = calling("danger", value="x")
    agent = Agent("a", "Hi {{ $ctx.who }}", tools=[tool_named("danger", needs_approval=True)], model=model)
    context = await agent.run_async("do it", {"who": "Bo"})
    state = context["result"].to_state()
    state.approve(state.get_interruptions()[0])
    assert await agent.run_async(state) is context
    assert model.last_call.system_instructions == "Hi Bo"


async def test_an_agent_as_tool_renders_from_the_same_context(traces: Any) -> None:
    inner_model, outer_model = ScriptedModel([[assistant_message("42")]]), calling("ask", input="q")
    inner = Agent("inner", "Inner {{ $ctx.who }}", model=inner_model)
    outer = Agent("outer", "Outer", model=outer_model, tools=[inner.sdk_agent.as_tool("ask", "Ask.")])
    await outer.run_async("hi", {"who": "Bo"})
    assert inner_model.last_call.system_instructions == "Inner Bo"
    assert [s.raw["span_data"]["data"]["agent_name"] for s in traces.spans(name="agent_run")] == ["inner"]


async def test_the_sdk_agent_can_be_run_and_cloned_with_the_sdk_alone() -> None:
    model = ScriptedModel([[assistant_message("x")]] * 2)
    agent = Agent("a", "Hi {{ $ctx.who }}", tools=[tool_named("t")], model=model)
    await agents.Runner.run(agent.sdk_agent, "hi", context={"who": "Bo"})
    clone = agent.sdk_agent.clone(name="copy")
    assert isinstance(clone, SDKAgent)
    await agents.Runner.run(clone, "hi", context=None)
    assert [call.system_instructions for call in model.calls] == ["Hi Bo", "Hi "]
    assert [[tool.name for tool in call.tools] for call in model.calls] == [["t"], ["t"]]


# Rules


@pytest.mark.parametrize(
    ("rules", "visible"),
    [
        ({}, ["a", "b", "web_search"]),
        ({"allow": "*"}, ["a", "b", "web_search"]),
        ({"allow": ["a"]}, ["a"]),
        ({"allow": ["a", "web_search"], "deny": ["a"]}, ["web_search"]),
        ({"deny": "*"}, []),
        ({"deny": ("web_search",)}, ["a", "b"]),
        ({"allow": []}, []),
    ],
)
async def test_a_tool_the_rules_forbid_is_not_shown(rules: Any, visible: Any) -> None:
    model = ScriptedModel([[assistant_message("x")]])
    agent = Agent("a", "b", tools=[tool_named("a"), tool_named("b"), WebSearchTool()], model=model)
    await agent.run_async("hi", {"tool_rules": rules})
    assert [tool.name for tool in model.last_call.tools] == visible


async def test_a_tool_denied_during_the_run_is_not_run(traces: Any) -> None:
    log: list = []

    async def forbid(ctx: RunContextWrapper[dict]) -> str:
        """Change the rules."""
        ctx.context["tool_rules"]["deny"] = ["danger"]
        return "forbidden from now on"

    danger = tool_named("danger", log)
    model = ScriptedModel(
        [
            [function_call("forbid", {}, call_id="c1")],
            [assistant_message("x")],
        ]
    )
    agent = Agent("a", "b", tools=[forbid, danger], model=model)

    async def deny_after_the_model_call(ctx: Any, agent_: Any, response: Any) -> None:
        ctx.context["tool_rules"]["deny"] = ["danger"]

    class Hooks(agents.RunHooks):
        on_llm_end = staticmethod(deny_after_the_model_call)

    await agent.run_async("hi")
    late = calling("danger", value="x")
    second = Agent("a", "b", tools=[danger], model=late)
    await second.run_async("hi", hooks=Hooks())
    assert log == []
    assert "[kantan-agents][E8] Tool is not allowed: danger" in str(late.last_call.input[-1])
    (refused,) = traces.spans(name="tool_refused")
    data = refused.raw["span_data"]["data"]
    assert (data["tool"], data["code"], data["rule"]) == ("danger", "E8", "deny: danger")


async def test_a_tool_disabled_between_model_call_and_execution_is_not_run() -> None:
    log: list = []
    model = calling("t", value="x")
    agent = Agent("a", "b", tools=[tool_named("t", log)], model=model)
    (kept,) = await agent.sdk_agent.get_all_tools(agents.RunContextWrapper({}))

    class Hooks(agents.RunHooks):
        async def on_llm_end(self, *_: Any) -> None:
            kept.is_enabled = False

    await agent.run_async("hi", hooks=Hooks())
    assert log == []
    assert "[E8]" in str(model.last_call.input[-1])


async def test_rules_that_become_invalid_during_a_run_refuse_every_tool() -> None:
    log: list = []
    model = calling("t", value="x")

    class Hooks(agents.RunHooks):
        async def on_llm_end(self, ctx: Any, *_: Any) -> None:
            ctx.context["tool_rules"]["allow"] = "t"

    agent = Agent("a", "b", tools=[tool_named("t", log)], model=model, tool_use_behavior="stop_on_first_tool")
    context = await agent.run_async("hi", hooks=Hooks())
    assert log == []
    assert "[E20]" in context["result"].final_output


async def test_a_refusal_is_logged_through_the_applications_logging_and_printed_nowhere(
    caplog: Any, capfd: Any
) -> None:
    class Hooks(agents.RunHooks[Any]):
        async def on_llm_end(self, ctx: Any, *_: Any) -> None:
            ctx.context["tool_rules"]["deny"] = "*"

    async def run_once() -> None:
        agent = Agent("a", "b", tools=[tool_named("t")], model=calling("t"))
        await agent.run_async("hi", hooks=Hooks())

    await run_once()
    assert caplog.records == []
    with caplog.at_level("INFO", logger="kantan_agents"):
        await run_once()
    (record,) = [record for record in caplog.records if record.name == "kantan_agents.tools"]
    assert (record.name, record.msg) == ("kantan_agents.tools", "tool call refused")
    assert (record.tool, record.code) == ("t", "E8")
    assert capfd.readouterr() == ("", "")


# Settings


def test_quick_settings_equal_plain_ones_in_both_directions() -> None:
    plain = ModelSettings(temperature=0.5, extra_args={"a": 1})
    quick = QuickSettings.adopt(plain)
    assert quick == plain and plain == quick and quick() == plain
    assert type(quick()) is ModelSettings
    assert quick != ModelSettings() and ModelSettings() != quick
    assert quick.resolve(ModelSettings(top_p=0.1)).to_json_dict() == (
        plain.resolve(ModelSettings(top_p=0.1)).to_json_dict()
    )


def test_a_users_settings_class_is_kept() -> None:
    class Mine(ModelSettings):
        pass

    mine = Mine()
    assert QuickSettings.adopt(mine) is mine


async def test_hosted_tools_that_share_the_name_of_their_kind_are_all_kept() -> None:
    hosted = [
        agents.HostedMCPTool(
            tool_config={"type": "mcp", "server_label": label, "server_url": "http://127.0.0.1/"}
        )
        for label in ("a", "b")
    ]
    assert len(Agent("a", "b", tools=hosted).sdk_agent.tools) == 2


async def test_a_tool_the_user_disables_is_neither_shown_nor_run() -> None:
    log: list[Any] = []
    tool = tool_named("t", log)
    model = calling("t", value="x")
    agent = Agent("a", "b", tools=[tool], model=model)

    class Hooks(agents.RunHooks[Any]):
        async def on_llm_end(self, *_: Any) -> None:
            tool.is_enabled = False

    await agent.run_async("hi", hooks=Hooks())
    assert log == []
    assert await shown(agent) == []


async def test_a_clone_uses_the_options_it_is_given() -> None:
    model = ScriptedModel([[assistant_message("x")]])
    agent = Agent("a", "old", tools=[tool_named("t")], model=model)
    clone = agent.sdk_agent.clone(instructions="new", tools=[])
    await agents.Runner.run(clone, "hi", context={})
    assert (model.calls[0].system_instructions, model.calls[0].tools) == ("new", [])
