"""Which tools, middleware, model and configuration a child inherits, however its parent was started."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import agents
import pytest
from agents.tool_context import ToolContext

from kantan_agents import Agent, AgentDefinition, task_tool
from kantan_agents.errors import InvalidOptionError
from kantan_agents.middleware import Approve, Rejected
from kantan_agents.testing import ScriptedModel, assistant_message
from kantan_agents.tool_rules import RuleLayers, ToolRules
from tests.agent.delegation.cast import Cast, boss, definition, delegate, read, say, use, write

WORKER = definition("worker")


async def reject(_call: Any) -> Any:
    return Rejected("not that")


def writer_cast(*names: str, times: int = 1) -> Cast:
    """Return a model for agents that hand off to `mid`, which delegates to `worker`, which writes."""
    scripts: dict[str, list[Any]] = {name: [use("transfer_to_mid"), say("never")] for name in names}
    mid = [delegate("worker"), say("done")] * times
    worker = [use("write", "t2", path="a"), say("worked")] * times
    return Cast(mid=mid, worker=worker, **scripts)


async def test_an_sdk_agent_shared_by_two_agents_uses_the_middleware_of_each() -> None:
    cast = writer_cast("first", "second", times=2)
    mid = agents.Agent(
        name="mid",
        instructions="You are mid.",
        model=cast,
        tools=[agents.function_tool(write), task_tool([WORKER])],
    )
    first = Agent("first", "You are first.", model=cast, handoffs=[mid])
    second = Agent(
        "second", "You are second.", model=cast, handoffs=[mid], middleware=[Approve(["write"], reject)]
    )
    await first.run_async("Go")
    assert cast.results("worker") == ["a written"]
    await second.run_async("Go")
    assert "not that" in cast.results("worker")[0]


async def test_delegations_of_a_hand_off_target_use_the_middleware_of_the_run() -> None:
    cast = writer_cast("first")
    mid = Agent("mid", "You are mid.", model=cast, tools=[write, task_tool([WORKER])])
    first = Agent(
        "first", "You are first.", model=cast, handoffs=[mid], middleware=[Approve(["write"], reject)]
    )
    await first.run_async("Go")
    assert "not that" in cast.results("worker")[0]


async def test_a_waiting_hand_off_target_cannot_be_delegated_to() -> None:
    cast = Cast(
        boss=[use("transfer_to_second"), say("never")],
        second=[delegate("worker"), say("done")],
        worker=[delegate("second", call_id="d2"), say("worked")],
    )
    files = [WORKER, definition("second"), definition("other")]
    second = Agent("second", "You are second.", model=cast, tools=[task_tool(files)])
    await Agent("boss", "You are boss.", model=cast, handoffs=[second]).run_async("Go")
    assert cast.results("worker")[0].startswith("[kantan-agents][E34]")


async def test_a_copy_of_an_agent_with_fewer_tools_passes_on_only_those() -> None:
    cast = Cast(boss=[delegate("worker"), say("done")], worker=[use("write", path="a"), say("worked")])
    task = task_tool([WORKER])
    agent = Agent("boss", "You are boss.", model=cast, tools=[read, write, task])
    copied = agent.sdk_agent.clone(tools=[agents.function_tool(read), task])
    await agents.Runner.run(copied, "Go")
    assert cast.visible_tools("worker") == ["read"]


async def test_a_copy_of_an_agent_with_another_model_passes_that_model_on() -> None:
    cast = Cast(boss=[delegate("worker"), say("done")], worker=[say("by the other")])
    agent = Agent("boss", "You are boss.", model=ScriptedModel(), tools=[read, task_tool([WORKER])])
    await agents.Runner.run(agent.sdk_agent.clone(model=cast), "Go")
    assert cast.results("boss") == ["by the other"]


async def test_children_get_tools_added_to_the_sdk_agent_later() -> None:
    cast = Cast(boss=[delegate("worker"), say("done")], worker=[say("worked")])
    agent = Agent("boss", "You are boss.", model=cast, tools=[task_tool([WORKER])])
    agent.sdk_agent.tools.append(agents.function_tool(read))
    await agent.run_async("Go")
    assert cast.visible_tools("worker") == ["read"]


async def test_the_run_config_of_a_plain_sdk_run_applies_to_the_child() -> None:
    cast = Cast(boss=[delegate("worker"), say("done")], worker=[say("by the caller's model")])
    agent = Agent("boss", "You are boss.", model=ScriptedModel(), tools=[read, task_tool([WORKER])])
    seen: list[Any] = []

    async def note(run: Any, call_next: Any) -> None:
        seen.append(run.run_config.trace_include_sensitive_data)
        await call_next(run)

    agent = Agent(
        "boss", "You are boss.", model=ScriptedModel(), tools=[read, task_tool([WORKER], middleware=[note])]
    )
    config = agents.RunConfig(model=cast, trace_include_sensitive_data=False)
    await agents.Runner.run(agent.sdk_agent, "Go", run_config=config)
    assert cast.results("boss") == ["by the caller's model"]
    assert seen == [False]


async def test_tools_allowed_by_a_provider_above_are_allowed_below() -> None:
    cast = Cast(boss=[delegate("worker"), say("done")], worker=[use("write", path="a"), say("worked")])
    agent = boss(cast, WORKER)
    agent.standing_rules = RuleLayers((("provider shop", ToolRules.parse({"allow": ["write"]})),))
    await agent.run_async("Go", {"tool_rules": {"allow": ["read", "Task"]}})
    assert cast.results("worker") == ["a written"]


class TestContextOfFiles:
    async def test_each_file_has_its_own_context(self) -> None:
        lead = definition("lead", context="LEAD")
        worker = definition("worker", context="WORKER")
        cast = Cast(
            boss=[delegate("lead"), say("done")], lead=[delegate("worker"), say("led")], worker=[say("ok")]
        )
        await boss(cast, lead, worker).run_async("Go", {"tenant": "acme"})
        prompts = {name: str(cast.parts[name].calls[0].system_instructions) for name in ("lead", "worker")}
        assert prompts["lead"].endswith("LEAD")
        assert prompts["worker"].endswith("WORKER")

    async def test_context_values_changed_by_a_tool_reach_the_child(self) -> None:
        async def move(context: agents.RunContextWrapper[Any]) -> str:
            """Change the context."""
            context.context["place"] = "there"
            return "moved"

        lead = definition("lead", context={"place": "here"})
        worker = AgentDefinition("worker", "works", "You are worker, {{ $ctx.place }}.")
        cast = Cast(
            boss=[delegate("lead"), say("done")],
            lead=[use("move"), delegate("worker"), say("led")],
            worker=[say("ok")],
        )
        tools = [agents.function_tool(move), task_tool([lead, worker])]
        await Agent("boss", "You are boss.", model=cast, tools=tools).run_async("Go")
        assert cast.parts["worker"].calls[0].system_instructions == "You are worker, there."


@pytest.mark.parametrize("option", ["tools", "mcp_servers", "handoffs", "tool_providers", "instructions"])
def test_options_that_could_widen_a_child_are_refused(option: str) -> None:
    options: dict[str, Any] = {option: []}
    with pytest.raises(InvalidOptionError, match=f"{option}: is set by the agent.s file"):
        task_tool([WORKER], **options)


def test_an_option_that_does_not_exist_is_refused_when_the_tool_is_made() -> None:
    with pytest.raises(InvalidOptionError, match="modle: task_tool and Agent have no such option"):
        task_tool([WORKER], modle="x")


def test_one_tool_can_be_used_from_many_threads() -> None:
    task = task_tool([WORKER])
    failed: list[BaseException] = []

    def serve() -> None:
        async def requests() -> None:
            for _ in range(10):
                cast = Cast(boss=[delegate("worker"), say("done")], worker=[say("worked")])
                await Agent("boss", "You are boss.", model=cast, tools=[read, task]).run_async("Go")
                assert cast.results("boss") == ["worked"]

        try:
            asyncio.run(requests())
        except BaseException as error:  # noqa: BLE001 - asserted below, in the main thread
            failed.append(error)

    threads = [threading.Thread(target=serve) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


async def test_many_rules_about_many_agents_do_not_block_the_event_loop() -> None:
    many = [definition(f"agent{number:03}") for number in range(300)]
    denied = tuple(f"Agent(agent{number:03})" for number in range(0, 300, 10))
    lead = definition("lead", disallowed_tools=denied)
    cast = Cast(boss=[delegate("lead"), say("done")], lead=[use("read", path="a"), say("led")])
    turns = 0

    async def tick() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    ticking = asyncio.create_task(tick())
    await boss(cast, lead, *many).run_async("Go")
    ticking.cancel()
    description = cast.parts["lead"].calls[1].tools[-1].description
    assert "agent001" in description
    assert "agent010" not in description
    assert turns > 15
    assert cast.parts["lead"].calls[0].tools[-1] is cast.parts["lead"].calls[1].tools[-1]


async def test_the_tool_works_without_a_calling_agent() -> None:
    model = ScriptedModel([[assistant_message("ok")]])
    task = task_tool([definition("worker")], model=model)
    context: ToolContext[Any] = ToolContext({}, tool_name="Task", tool_call_id="1", tool_arguments="{}")
    asked = '{"description": "d", "prompt": "p", "subagent_type": "worker"}'
    assert await task.on_invoke_tool(context, asked) == "ok"
