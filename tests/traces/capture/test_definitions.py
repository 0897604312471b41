"""Definitions that are encoded once are encoded again when they change."""

from __future__ import annotations

from typing import Any

import pytest
from agents import FunctionTool, ModelSettings, function_tool

from kantan_agents import Agent, AnthropicProvider, GeminiProvider, Prompt
from kantan_agents.testing import ScriptedModel
from kantan_agents.traces.capture import ToolDefinition
from tests.models.protocol.wire_server import Body, WireServer
from tests.traces.capture.recording import Recording


def make_tool() -> FunctionTool:
    @function_tool
    async def look(city: str) -> str:
        """Look."""
        return city

    return look


def offered(recording: Recording) -> list[ToolDefinition]:
    """Return the tool that each run has offered."""
    found = [trace.runs[0].model_calls[0].request.tools for trace in recording.traces()]
    return [tool for (tool,) in found]


def rename(tool: FunctionTool) -> None:
    tool.name = "other"


def describe(tool: FunctionTool) -> None:
    tool.description = "Look again."


def change_schema(tool: FunctionTool) -> None:
    tool.params_json_schema["properties"]["city"]["description"] = "Where."


def loosen(tool: FunctionTool) -> None:
    tool.strict_json_schema = False


@pytest.mark.parametrize("change", [rename, describe, change_schema, loosen])
async def test_a_tool_that_is_changed_between_runs_is_captured_as_it_was_sent(
    recording: Recording, change: Any
) -> None:
    tool, model = make_tool(), ScriptedModel(["Hi.", "Hi.", "Hi."])
    agent = Agent("a", "x", model=model, tools=[tool])
    await agent.run_async("Go")
    await agent.run_async("Go")
    sent: Any = model.calls[1].tools[0]  # the agent's own copy
    change(sent)
    await agent.run_async("Go")
    assert model.calls[2].tools[0] is sent
    first, second, third = offered(recording)
    assert first == second
    assert second != third
    assert (third.name, third.description, third.parameters, third.is_strict) == (
        sent.name,
        sent.description,
        sent.params_json_schema,
        sent.strict_json_schema,
    )


async def test_each_copy_of_an_agent_is_captured_with_its_own_prompt(recording: Recording) -> None:
    agent = Agent("a", "One {{ $ctx.n }}.", model=ScriptedModel(["Hi."] * 3))
    await agent.run_async("Go", {"n": 1})
    await agent.run_async("Go", {"n": 2})
    await agent.clone(instructions=Prompt("p", "2", "Two {{ $ctx.n }}.")).run_async("Go", {"n": 3})
    runs = [trace.runs[0] for trace in recording.traces()]
    assert [run.model_calls[0].request.instructions for run in runs] == ["One 1.", "One 2.", "Two 3."]
    texts = [run.agents[0].prompt.text for run in runs if run.agents[0].prompt is not None]
    assert texts == ["One {{ $ctx.n }}."] * 2 + ["Two {{ $ctx.n }}."]


async def test_items_that_are_changed_after_the_run_are_captured_as_they_were(recording: Recording) -> None:
    items: list[Any] = [{"role": "user", "content": "Go"}]
    context: dict[str, Any] = {"names": ["Aiko"]}
    agent = Agent("a", "For {{ $ctx.names }}.", model=ScriptedModel(["Hi."]))
    await agent.run_async(items, context)
    items[0]["content"] = "Changed"
    context["names"].append("Changed")
    run = recording.run()
    assert "Changed" not in repr(run)
    assert run.agents[0].context == {"names": ["Aiko"]}


SAID = {"content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn"}
TEXT = {"candidates": [{"content": {"parts": [{"text": "Done."}]}, "finishReason": "STOP"}]}


@pytest.mark.parametrize("api", ["anthropic", "gemini"])
async def test_what_a_provider_adds_to_each_request_is_captured(recording: Recording, api: str) -> None:
    with WireServer([Body(SAID if api == "anthropic" else TEXT)]) as server:
        provider: Any = (
            AnthropicProvider(
                "claude-x", api_key="k", base_url=server.url, max_tokens=77, cache=True, cache_ttl="1h"
            )
            if api == "anthropic"
            else GeminiProvider("gemini-3-flash", api_key="k", base_url=server.url)
        )
        async with provider:
            settings = ModelSettings(temperature=0.5)
            await Agent("a", "x", model=provider, model_settings=settings).run_async("Go")
    call = recording.call()
    assert (call.provider, call.api) == (api, "other")
    assert call.request.settings["temperature"] == 0.5
    added = {"max_tokens": 77, "cache_ttl": "1h"} if api == "anthropic" else None
    assert call.request.options.get("provider") == added
