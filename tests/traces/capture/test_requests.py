"""What is captured of a request is what the provider received, over both of OpenAI's APIs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from agents import HostedMCPTool, ModelSettings, RunConfig, WebSearchTool, function_tool
from openai.types.shared import Reasoning
from pydantic import BaseModel

from kantan_agents import Agent, Prompt
from kantan_agents.testing import OfflineServer, Reply, ScriptedModel, ScriptedToolCall
from kantan_agents.traces.capture import ModelCallRecord
from tests.traces.capture.recording import Recording, assert_sent

API = pytest.mark.parametrize("api", ["responses", "chat"])


def types(call: ModelCallRecord) -> list[Any]:
    """Return the types of the calls and results in the input of a call."""
    found = [item.get("type") for item in call.request.input if not isinstance(item, str)]
    return [kind for kind in found if kind is not None and kind != "message"]


class Weather(BaseModel):
    city: str
    degrees: float


@function_tool
async def look(city: str, days: int = 1) -> str:
    """Look out of the window.

    Args:
        city: Where.
        days: How many days.
    """
    return f"sunny in {city} for {days} days"


@function_tool(strict_mode=False)
async def note(text: str) -> str:
    """Write a note."""
    return text


@API
async def test_each_request_of_a_conversation_is_what_the_server_received(
    recording: Recording, api: str
) -> None:
    replies = [
        [
            "Let me see.",
            ScriptedToolCall("look", {"city": "Oslo"}),
            ScriptedToolCall("note", {"text": "ö😀"}),
        ],
        ScriptedToolCall("look", {"city": "Bergen"}),
        "Sunny.",
    ]
    target = Agent("other", "Help.", model=ScriptedModel(), handoff_description="Knows more.")
    with OfflineServer(replies) as server:
        agent = Agent(
            "geo",
            "Answer {{ $ctx.name }}.",
            model=server.bundle(api=api),
            tools=[look, note],
            handoffs=[target],
            model_settings=ModelSettings(temperature=0.25, max_tokens=99, parallel_tool_calls=True),
        )
        await agent.run_async("How is it?", {"name": "Aiko"})
    run = recording.run()
    assert len(run.model_calls) == len(server.requests) == 3
    for call, request in zip(run.model_calls, server.requests, strict=True):
        assert_sent(call, request)
        assert call.request.instructions == "Answer Aiko."
        assert [tool.name for tool in call.request.tools] == ["look", "note"]
        (handoff,) = call.request.handoffs
        assert (handoff.kind, handoff.name, handoff.options) == (
            "handoff",
            "transfer_to_other",
            {"agent": "other"},
        )
        settings = call.request.settings
        assert (settings["temperature"], settings["max_tokens"]) == (0.25, 99)
        assert settings["parallel_tool_calls"] is True
    first, second, third = run.model_calls
    assert len(first.request.input) == 1
    called, returned = ["function_call", "function_call_output"]
    assert types(second) == [called, called, returned, returned]
    assert types(third) == [called, called, returned, returned, called, returned]
    assert first.answer is not None
    assert first.answer.usage["requests"] == 1
    assert second.answer is not None
    assert third.answer is not None
    assert run.output == "Sunny."
    assert len({call.request.hash for call in run.model_calls}) == 3


@API
async def test_the_same_run_has_the_same_hashes(recording: Recording, api: str) -> None:
    for _ in range(2):
        with OfflineServer([ScriptedToolCall("look", {"city": "Oslo"}), "Sunny."]) as server:
            await Agent("geo", "Answer.", model=server.bundle(api=api), tools=[look]).run_async("Go")
    first, second = (trace.runs[0] for trace in recording.traces())
    assert [call.request.tools for call in first.model_calls] == [
        call.request.tools for call in second.model_calls
    ]
    assert first.model_calls[0].request.hash == second.model_calls[0].request.hash


@API
async def test_a_streamed_request_is_captured_with_its_whole_answer(recording: Recording, api: str) -> None:
    with OfflineServer([ScriptedToolCall("look", {"city": "Oslo"}), "It is very sunny there."]) as server:
        agent = Agent("geo", "Answer.", model=server.bundle(api=api), tools=[look])
        async with agent.stream("Go") as events:
            async for _ in events:
                pass
    run = recording.run()
    assert run.is_streamed
    for call, request in zip(run.model_calls, server.requests, strict=True):
        assert_sent(call, request)
        assert call.is_streamed
    one, other = (call.answer for call in run.model_calls)
    assert one is not None
    assert [item["type"] for item in one.output] == ["function_call"]
    assert one.output[0]["arguments"] == '{"city": "Oslo"}'
    assert other is not None
    assert other.usage["total_tokens"] == 15
    assert run.output == "It is very sunny there."


@pytest.mark.parametrize("mode", ["native", "prompt", "tool"])
async def test_structured_output_in_each_form_is_captured_as_it_was_sent(
    recording: Recording, mode: Any
) -> None:
    with OfflineServer([{"city": "Oslo", "degrees": 3.5}]) as server:
        agent = Agent("geo", "Answer.", model=server.bundle(), output_type=Weather, output_mode=mode)
        await agent.run_async("Go")
    call = recording.call()
    (request,) = server.requests
    assert call.request.instructions == request.system_instructions
    assert call.request.output is not None
    assert (call.request.output.name, call.request.output.mode) == ("Weather", mode)
    assert set(call.request.output.schema["properties"]) == {"city", "degrees"}
    assert recording.run().output == {"city": "Oslo", "degrees": 3.5}
    if mode == "tool":
        assert [tool["name"] for tool in request.body["tools"]] == [tool.name for tool in call.request.tools]


async def test_a_repair_is_a_call_of_its_own(recording: Recording) -> None:
    with OfflineServer(["no json", {"city": "Oslo", "degrees": 3.5}]) as server:
        agent = Agent(
            "geo",
            "Answer.",
            model=server.bundle(),
            output_type=Weather,
            output_mode="prompt",
            output_repairs=1,
        )
        await agent.run_async("Go")
    run = recording.run()
    assert len(run.model_calls) == len(server.requests) == 2
    for call, request in zip(run.model_calls, server.requests, strict=True):
        assert_sent(call, request)
        assert call.request.output is not None
        assert call.request.output.mode == "prompt"


async def test_a_form_that_the_provider_refuses_is_a_failed_call(recording: Recording) -> None:
    with OfflineServer([{"city": "Oslo", "degrees": 3.5}], profile="deepseek") as server:
        agent = Agent("geo", "Answer.", model=server.bundle(provider="compat"), output_type=Weather)
        await agent.run_async("Go")
    run = recording.run()
    assert len(run.model_calls) == len(server.requests) > 1
    *refused, accepted = run.model_calls
    for call, request in zip(run.model_calls, server.requests, strict=True):
        assert_sent(call, request)
    assert all(call.answer is None for call in refused)
    assert all(call.error is not None and "unavailable" in call.error.message for call in refused)
    assert accepted.error is None
    assert accepted.answer is not None
    modes = [call.request.output.mode for call in run.model_calls if call.request.output is not None]
    assert modes[0] == "native"
    assert modes[-1] != "native"


async def test_ids_of_a_conversation_that_the_provider_keeps_are_captured(recording: Recording) -> None:
    with OfflineServer(["One.", "Two."]) as server:
        agent = Agent("geo", "Answer.", model=server.bundle())
        await agent.run_async("Go", previous_response_id="resp_1")
        await agent.run_async("Go", conversation_id="conv_1")
    one, other = (trace.runs[0].model_calls[0].request.options for trace in recording.traces())
    assert one["previous_response_id"] == "resp_1" == server.requests[0].body["previous_response_id"]
    assert other["conversation_id"] == "conv_1" == server.requests[1].body["conversation"]


async def test_an_option_that_is_set_is_captured_also_if_it_is_empty(recording: Recording) -> None:
    agent = Agent("geo", "Answer.", model=ScriptedModel(["One."]))
    await agent.run_async("Go", previous_response_id="")
    (trace,) = recording.traces()
    assert trace.runs[0].model_calls[0].request.options == {"previous_response_id": ""}


@API
async def test_all_settings_are_captured_with_those_of_the_prompt_cache(
    recording: Recording, api: str
) -> None:
    settings = ModelSettings(
        top_p=0.5,
        reasoning=Reasoning(effort="low"),
        metadata={"team": "geo"},
        extra_headers={"X-Team": "geo"},
        extra_query={"v": "2"},
        extra_body={"user": "u1"},
        extra_args={"prompt_cache_key": "k1", "safety_identifier": "s1"},
        store=False,
    )
    with OfflineServer(["Hi."]) as server:
        await Agent("geo", "Answer.", model=server.bundle(api=api), model_settings=settings).run_async("Go")
    call, (request,) = recording.call(), server.requests
    given = call.request.settings
    assert given["extra_args"] == {"prompt_cache_key": "k1", "safety_identifier": "s1"}
    assert request.body["prompt_cache_key"] == "k1"
    assert given["extra_headers"] == {"X-Team": "geo"}
    assert given["extra_query"] == {"v": "2"}
    assert given["extra_body"] == {"user": "u1"}
    assert given["metadata"] == {"team": "geo"}
    assert given["store"] is False
    assert given["reasoning"]["effort"] == "low"  # type: ignore[call-overload]


async def test_settings_of_the_run_are_captured_as_they_were_merged(recording: Recording) -> None:
    with OfflineServer(["Hi."]) as server:
        agent = Agent(
            "geo", "Answer.", model=server.bundle(), model_settings=ModelSettings(temperature=0.1, top_p=0.5)
        )
        await agent.run_async("Go", run_config=RunConfig(model_settings=ModelSettings(temperature=0.9)))
    assert recording.call().request.settings["temperature"] == 0.9
    assert server.requests[0].body["temperature"] == 0.9
    assert server.requests[0].body["top_p"] == 0.5


async def test_hosted_tools_are_captured_in_the_order_shown(recording: Recording) -> None:
    hosted = HostedMCPTool(
        tool_config={
            "type": "mcp",
            "server_label": "docs",
            "server_url": "https://docs.example.com/mcp",
            "require_approval": "never",
        }
    )
    tools = [look, WebSearchTool(search_context_size="low"), hosted, note]
    with OfflineServer(["Hi."]) as server:
        await Agent("geo", "Answer.", model=server.bundle(), tools=tools).run_async("Go")
    call, (request,) = recording.call(), server.requests
    assert [tool.kind for tool in call.request.tools] == ["function", "web_search", "hosted_mcp", "function"]
    assert [tool["type"] for tool in request.body["tools"]] == ["function", "web_search", "mcp", "function"]
    _, search, server_tool, _ = call.request.tools
    assert search.options["search_context_size"] == "low"
    assert server_tool.server == "docs"
    assert server_tool.options["tool_config"]["server_url"] == "https://docs.example.com/mcp"  # type: ignore[call-overload]


async def test_an_input_of_items_with_a_picture_is_captured(recording: Recording) -> None:
    items: list[Any] = [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "What is it?"},
                {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"},
            ],
        }
    ]
    with OfflineServer(["A dot."]) as server:
        await Agent("geo", "Answer.", model=server.bundle()).run_async(items)
    run = recording.run()
    assert [*run.input] == items
    assert_sent(run.model_calls[0], server.requests[0])


class Caching(ScriptedModel):
    """A model for which the SDK makes up a key of the prompt cache."""

    def _supports_default_prompt_cache_key(self) -> bool:
        return True


async def test_a_key_of_the_prompt_cache_that_the_sdk_adds_is_captured(recording: Recording) -> None:
    model = Caching(["Hi."])
    await Agent("geo", "Answer.", model=model).run_async("Go")
    assert model.last_call is not None
    added = model.last_call.model_settings.extra_args
    assert recording.call().request.settings.get("extra_args") == added
    assert added is None or set(added) == {"prompt_cache_key"}


async def test_attempts_of_the_http_client_are_one_call(recording: Recording) -> None:
    headers = {"retry-after-ms": "1"}
    with OfflineServer([Reply("busy", status=503, headers=headers), "Hi."]) as server:
        await Agent("geo", "Answer.", model=server.bundle()).run_async("Go")
    assert len(server.requests) == 2
    assert recording.call().answer is not None


@pytest.mark.parametrize(
    "instructions", ["{{ $ctx.missing }}", "{{ $ctx.a }}", Prompt("p", "2", "Hi {{ $ctx.a }}")]
)
async def test_instructions_are_captured_as_they_were_sent(recording: Recording, instructions: Any) -> None:
    with OfflineServer(["Hi."]) as server:
        await Agent("geo", instructions, model=server.bundle()).run_async("Go", {"a": "1", "b": "private"})
    call = recording.call()
    assert call.request.instructions == server.requests[0].system_instructions


async def test_no_request_is_captured_unless_a_recorder_wants_it(
    recording_at: Callable[..., Recording],
) -> None:
    recording = recording_at(record_requests=False)
    with OfflineServer(["Hi."]) as server:
        await Agent("geo", "Secret instructions.", model=server.bundle()).run_async("Go")
    trace = recording.trace()
    assert trace.runs == ()
    assert len(trace.missing) == 1
    recording.recorder.shutdown()
    assert b"Secret instructions" not in recording.recorder.path.read_bytes().replace(b"\\n", b"")
