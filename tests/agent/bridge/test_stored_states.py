"""The state of a run is stored as JSON by the SDK's own methods, and restored."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any

import agents
import pytest
from agents import Runner, RunState

from kantan_agents import Agent
from kantan_agents.agent.bridge import without_result
from kantan_agents.testing import OfflineServer, ScriptedModel
from tests.agent.bridge.test_sdk_agent import calling, tool_named

CONTEXT = {"customer": "Bo", "items": [1, {"a": None}]}
STORED = {"customer", "history", "items", "tool_rules"}


async def finished(agent: Agent, context: dict[str, Any], *, streamed: bool) -> dict[str, Any]:
    if not streamed:
        return await agent.run_async("hi", context)
    async with agent.stream("hi", context) as run:
        async for _ in run:
            continue
    return run.context


@pytest.mark.parametrize("streamed", [False, True])
async def test_the_state_of_a_finished_run_is_stored_without_the_result(streamed: bool) -> None:
    with OfflineServer(["Hello."]) as server:
        agent = Agent("a", "x", model=server.bundle())
        context = await finished(agent, copy.deepcopy(CONTEXT), streamed=streamed)
    result = context["result"]
    data = result.to_state().to_json()
    text = result.to_state().to_string()
    assert json.loads(text) == json.loads(json.dumps(data))
    assert set(data["context"]["context"]) == STORED
    assert context["result"] is result  # back in its place
    assert result.context_wrapper.context is context
    kinds = (type(result), type(result.to_state()))
    assert [kind.__name__ for kind in kinds] == [
        "RunResultStreaming" if streamed else "RunResult",
        "RunState",
    ]
    assert isinstance(result, agents.RunResultStreaming if streamed else agents.RunResult)


async def test_the_state_is_what_the_sdk_stores_for_its_own_run() -> None:
    def stored(result: Any) -> dict[str, Any]:
        data = result.to_state().to_json()
        return {key: value for key, value in data.items() if key not in ("context", "trace")}

    with OfflineServer(["Hello.", "Hello."]) as server:
        model = server.bundle()
        ours = await Agent("a", "x", model=model).run_async("hi", {})
        sdk_model = agents.OpenAIResponsesModel(model.model, model.client)
        plain = await Runner.run(agents.Agent("a", instructions="x", model=sdk_model), "hi", context={})
    assert _shape(stored(ours["result"])) == _shape(stored(plain))


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shape(inner) for key, inner in value.items()}
    return [_shape(inner) for inner in value] if isinstance(value, list) else type(value)


@pytest.mark.parametrize("options", [{}, {"strict_context": True}, {"context_serializer": lambda _: {}}])
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_paused_run_is_restored_from_its_text_and_continued(
    streamed: bool, options: dict[str, Any]
) -> None:
    log: list[Any] = []
    agent = Agent(
        "a", "x", tools=[tool_named("danger", log, needs_approval=True)], model=calling("danger", value="x")
    )
    context = await finished(agent, copy.deepcopy(CONTEXT), streamed=streamed)
    text = context["result"].to_state().to_string(**options)
    state = await RunState.from_string(agent.sdk_agent, text)
    (waiting,) = state.get_interruptions()
    state.approve(waiting)
    resumed = await agent.run_async(state)
    assert resumed["result"].final_output == "done"
    assert (log, resumed["customer"], resumed["items"]) == ([("danger", "x")], "Bo", CONTEXT["items"])
    assert resumed is not context
    # The result of the continued run can be stored as well.
    assert set(json.loads(resumed["result"].to_state().to_string())["context"]["context"]) == STORED


async def test_a_run_paused_inside_an_agent_used_as_a_tool_is_stored_and_continued() -> None:
    log: list[Any] = []
    inner = Agent(
        "inner",
        "x",
        tools=[tool_named("danger", log, needs_approval=True)],
        model=calling("danger", value="x"),
    )
    outer = Agent(
        "outer", "x", tools=[inner.sdk_agent.as_tool("ask", "Ask.")], model=calling("ask", input="please")
    )
    context = await outer.run_async("hi", copy.deepcopy(CONTEXT))
    text = context["result"].to_state().to_string()
    state = await RunState.from_string(outer.sdk_agent, text)
    (waiting,) = state.get_interruptions()
    state.approve(waiting)
    resumed = await outer.run_async(state)
    assert (resumed["result"].final_output, log) == ("done", [("danger", "x")])


async def test_a_restored_state_can_be_continued_by_the_sdk_alone() -> None:
    agent = Agent(
        "a", "x", tools=[tool_named("danger", needs_approval=True)], model=calling("danger", value="x")
    )
    context = await agent.run_async("hi", copy.deepcopy(CONTEXT))
    state = await RunState.from_string(agent.sdk_agent, context["result"].to_state().to_string())
    state.approve(state.get_interruptions()[0])
    result = await Runner.run(agent.sdk_agent, state)
    assert result.final_output == "done"


async def test_a_value_that_json_cannot_represent_is_an_error_as_with_the_sdk_and_nothing_is_dropped() -> (
    None
):
    agent = Agent("a", "x", model=ScriptedModel(["Hello."]))
    connection = object()
    context = await agent.run_async("hi", {"connection": connection})
    state = context["result"].to_state()
    with pytest.raises(TypeError, match="object is not JSON serializable"):
        state.to_string()
    assert state.to_json()["context"]["context"]["connection"] is connection
    assert list(context)[-1] == "result"


async def test_a_copy_of_a_result_has_a_state_that_can_be_stored() -> None:
    agent = Agent("a", "x", model=ScriptedModel(["Hello."]))
    context = await agent.run_async("hi", copy.deepcopy(CONTEXT))
    copied = copy.deepcopy(context)
    assert json.loads(copied["result"].to_state().to_string())["context"]["context"]["customer"] == "Bo"


async def test_a_context_without_its_result_is_json_and_a_later_run_continues_its_history() -> None:
    agent = Agent("a", "x", model=ScriptedModel(["Hello.", "Again."]))
    context = await agent.run_async("hi", copy.deepcopy(CONTEXT))
    text = json.dumps({key: value for key, value in context.items() if key != "result"})
    continued = await agent.run_async("and now?", json.loads(text))
    assert [entry["text"] for entry in continued["history"]] == ["hi", "Hello.", "and now?", "Again."]


async def test_a_result_that_a_run_in_another_thread_puts_into_the_context_stays_there() -> None:
    agent = Agent("a", "x", model=ScriptedModel(["Hello.", "Again."]))
    context = await agent.run_async("hi", copy.deepcopy(CONTEXT))
    first = context["result"]
    with without_result(context):  # as the state of the first run is stored
        await asyncio.to_thread(agent.run, "and now?", context)
    assert context["result"] is not first
    assert context["result"].final_output == "Again."
