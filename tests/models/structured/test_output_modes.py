"""The output modes, the providers that support them, and the modes that are remembered."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import agents
import pytest
from agents import RunConfig, Runner, set_default_openai_client
from agents.models import _openai_shared

from kantan_agents import Agent
from kantan_agents.core.events import ModelCallFinished, TextDelta
from kantan_agents.errors import InvalidOptionError, StructuredOutputError
from kantan_agents.middleware import Budget, Fallback
from kantan_agents.testing import (
    PROFILES,
    OfflineServer,
    RecordedRequest,
    Reply,
    ScriptedModel,
    ScriptedToolCall,
)
from tests.models.structured.invoices import DATA, TEXT, Invoice, invoice_agent

FIRST = {
    "openai": "native",
    "google": "native",
    "anthropic": "tool",
    "deepseek": "tool",
    "ollama": "native",
    "ignoring": "native",  # by luck: its JSON is found in the chat
    "plain": "prompt",
}


def mode_of(request: RecordedRequest) -> str:
    body = request.body
    format_ = body.get("response_format") or (body.get("text") or {}).get("format") or {}
    if format_.get("type") == "json_schema":
        return "native"
    names = [(tool.get("function") or tool)["name"] for tool in body.get("tools") or ()]
    if any(name.startswith("final_answer") for name in names):
        return "tool"
    said = json.dumps([body.get("messages"), body.get("instructions")])
    return "prompt" if "MUST respond with ONLY a valid JSON object" in said else "text"


def unused() -> ScriptedModel:
    return ScriptedModel([])


def look(word: str) -> str:
    """Look something up."""
    return f"found {word}"


def looking_first(request: RecordedRequest) -> Any:
    has_looked = "found lamp" in json.dumps(request.body) or '"look"' not in json.dumps(request.body)
    return DATA if has_looked else ScriptedToolCall("look", {"word": "lamp"})


@pytest.mark.parametrize("profile", PROFILES)
async def test_auto_finds_and_remembers_the_supported_mode(profile: str) -> None:
    with OfflineServer(lambda _request: DATA, profile=profile) as server:
        agent = invoice_agent(server.bundle())
        context = await agent.run_async("Read it")
        assert context["invoice"] == DATA
        assert mode_of(server.requests[-1]) == FIRST[profile]
        discovery = len(server.requests)
        # Another agent with the same output type uses the remembered mode.
        again = await invoice_agent(server.bundle()).run_async("Read it")
    assert again["invoice"] == DATA
    assert [mode_of(request) for request in server.requests[discovery:]] == [FIRST[profile]]


@pytest.mark.parametrize("profile", [name for name in PROFILES if name not in ("ollama", "plain")])
async def test_auto_works_with_tools(profile: str) -> None:
    with OfflineServer(looking_first, profile=profile) as server:
        agent = invoice_agent(server.bundle(), tools=[look])
        context = await agent.run_async("Read it")
        assert context["invoice"] == DATA
        once = len(server.requests)
        await agent.run_async("Read it")
        assert len(server.requests) - once == 2  # the tool's turn and the answer


async def test_google_gets_no_schema_together_with_tools() -> None:
    with OfflineServer(looking_first, profile="google") as server:
        await invoice_agent(server.bundle(), tools=[look]).run_async("Read it")
        assert [mode_of(request) for request in server.requests] == ["tool", "tool"]
        await invoice_agent(server.bundle()).run_async("Read it")
        assert mode_of(server.requests[-1]) == "native"


async def test_a_model_that_refuses_a_forced_tool_is_called_without() -> None:
    with OfflineServer(lambda _request: DATA, profile="deepseek") as server:
        agent = invoice_agent(server.bundle("deepseek-reasoner"))
        for _ in range(2):
            assert (await agent.run_async("Read it"))["invoice"] == DATA
    assert [request.body.get("tool_choice") for request in server.requests] == ["required", None, None]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("tools", [[], [look]], ids=["alone", "beside tools"])
async def test_a_stream_gives_the_same_result(profile: str, tools: list[Any]) -> None:
    if tools and profile in ("ollama", "plain"):
        tools = []  # it has none
    with OfflineServer(looking_first if tools else lambda _request: DATA, profile=profile) as server:
        async with invoice_agent(server.bundle(), tools=tools).stream("Read it") as run:
            streamed = "".join([piece async for piece in run.text_deltas()])
    assert run.context["invoice"] == DATA
    assert TEXT in streamed


async def test_the_answer_is_streamed_incrementally_even_as_arguments_of_a_tool() -> None:
    with OfflineServer(lambda _request: DATA, profile="deepseek") as server:
        async with invoice_agent(server.bundle()).stream("Read it") as run:
            events = [event async for event in run]
    deltas = [event.text for event in events if isinstance(event, TextDelta)]
    assert len(deltas) > 2
    assert "".join(deltas) == TEXT


@pytest.mark.parametrize("mode", ["native", "tool", "prompt"])
@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_an_explicit_mode_is_used(mode: Any, api: str) -> None:
    with OfflineServer(lambda _request: DATA) as server:
        agent = invoice_agent(server.bundle(api=api), output_mode=mode)
        assert (await agent.run_async("Read it"))["invoice"] == DATA
    assert [mode_of(request) for request in server.requests] == [mode]


@pytest.mark.parametrize("mode", ["native", "tool", "prompt"])
async def test_an_explicit_mode_excludes_the_others(mode: Any) -> None:
    with OfflineServer(lambda _request: "no") as server, pytest.raises(StructuredOutputError) as caught:
        await invoice_agent(server.bundle(), output_mode=mode).run_async("Read it")
    assert [mode_of(request) for request in server.requests] == [mode, mode]
    assert [attempt.mode for attempt in caught.value.attempts] == [mode, mode]


async def test_a_refusal_of_the_only_mode_is_an_error_with_the_providers_message() -> None:
    with (
        OfflineServer([], profile="plain") as server,
        pytest.raises(StructuredOutputError, match="Unrecognized request argument") as caught,
    ):
        await invoice_agent(server.bundle(), output_mode="native").run_async("Read it")
    assert caught.value.text is None
    assert caught.value.attempts[0].refusal is not None


async def test_an_error_unrelated_to_the_form_is_raised_unchanged() -> None:
    import openai

    too_long = Reply("This model's maximum context length is 8192 tokens.", status=400)
    with OfflineServer(lambda _request: too_long) as server, pytest.raises(openai.BadRequestError):
        await invoice_agent(server.bundle(api="chat")).run_async("Read it")
    assert len(server.requests) == 1


@pytest.mark.parametrize("wrong", ["json", None, 1, "AUTO"])
def test_an_unknown_mode_is_an_error(wrong: Any) -> None:
    with pytest.raises(InvalidOptionError, match="output_mode: must be one of 'auto', 'native'"):
        Agent("a", "b", output_type=Invoice, output_mode=wrong)


@pytest.mark.parametrize("wrong", [-1, "1", True, 1.5])
def test_an_invalid_number_of_repairs_is_an_error(wrong: Any) -> None:
    with pytest.raises(InvalidOptionError, match="output_repairs"):
        Agent("a", "b", output_type=Invoice, output_repairs=wrong)


async def test_the_final_tool_is_renamed_if_a_tool_has_its_name() -> None:
    def final_answer(word: str) -> str:
        """Do something else."""
        return "found lamp"

    tool_names: list[list[str]] = []

    def reply(request: RecordedRequest) -> Any:
        tool_names.append([tool["function"]["name"] for tool in request.body["tools"]])
        done = "found lamp" in json.dumps(request.body["messages"])
        return (
            ScriptedToolCall("final_answer_2", DATA)
            if done
            else ScriptedToolCall("final_answer", {"word": "x"})
        )

    with OfflineServer(reply) as server:
        agent = invoice_agent(server.bundle(api="chat"), tools=[final_answer], output_mode="tool")
        context = await agent.run_async("Read it")
    assert context["invoice"] == DATA
    assert tool_names[0] == ["final_answer", "final_answer_2"]


async def test_tool_rules_do_not_apply_to_the_final_tool() -> None:
    with OfflineServer(lambda _request: DATA, profile="anthropic") as server:
        agent = invoice_agent(server.bundle(), tools=[look])
        context = await agent.run_async("Read it", {"tool_rules": {"deny": ["*"]}})
    assert context["invoice"] == DATA


async def test_a_call_of_the_final_tool_is_a_message_in_the_conversation() -> None:
    with OfflineServer(lambda _request: DATA, profile="anthropic") as server:
        context = await invoice_agent(server.bundle()).run_async("Read it")
    items = context["result"].to_input_list()
    assert [item.get("type", item.get("role")) for item in items] == ["user", "message", "message"]
    assert items[-1]["content"][0]["text"] == TEXT


async def test_a_handoff_target_has_its_own_mode() -> None:
    with OfflineServer(lambda _request: DATA, profile="anthropic") as server:
        target = invoice_agent(server.bundle())
        with OfflineServer([ScriptedToolCall("transfer_to_clerk", {})]) as first:
            entry = Agent("entry", "Hand over.", model=first.bundle(), handoffs=[target])
            context = await entry.run_async("Read it")
    assert context["invoice"] == DATA


async def test_an_agent_with_an_output_type_may_hand_off() -> None:
    with OfflineServer([ScriptedToolCall("transfer_to_other", {}), "All done."]) as server:
        other = Agent("other", "Answer.", model=server.bundle(api="chat"))
        agent = invoice_agent(server.bundle(api="chat"), handoffs=[other], output_mode="tool")
        context = await agent.run_async("Read it")
    assert context["result"].final_output == "All done."
    assert "invoice" not in context


async def test_output_guardrails_see_the_value() -> None:
    seen: list[Any] = []

    async def guard(_context: Any, _agent: Any, output: Any) -> Any:
        seen.append(output)
        return agents.GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)

    with OfflineServer(lambda _request: DATA, profile="plain") as server:
        guardrails = [agents.OutputGuardrail(guard)]
        await invoice_agent(server.bundle(), output_guardrails=guardrails).run_async("Read it")
    assert seen == [Invoice(**DATA)]


async def test_the_sdks_runner_and_agents_as_tools_find_the_mode() -> None:
    with OfflineServer(lambda _request: DATA, profile="plain") as server:
        agent = invoice_agent(server.bundle())
        result = await Runner.run(agent.sdk_agent, "Read it")
        streamed = Runner.run_streamed(agent.sdk_agent, "Read it")
        async for _ in streamed.stream_events():
            pass
    assert result.final_output == streamed.final_output == Invoice(**DATA)


async def test_the_model_of_a_run_config_finds_its_mode() -> None:
    with OfflineServer(lambda _request: DATA, profile="plain") as server:
        model = agents.OpenAIChatCompletionsModel("other", server.bundle().client)
        agent = invoice_agent(unused())
        context = await agent.run_async("Read it", run_config=RunConfig(model=model))
        watched = invoice_agent(unused(), middleware=[Budget(max_model_calls=9)])
        again = await watched.run_async("Read it", run_config={"model": model})
    assert context["invoice"] == again["invoice"] == DATA
    assert mode_of(server.requests[-1]) == "prompt"


async def test_the_default_model_finds_its_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_openai_shared, "_default_openai_client", None)
    refused = Reply("Unsupported parameter: text.format", status=400)

    def reply(request: RecordedRequest) -> Any:
        return refused if mode_of(request) == "native" else ScriptedToolCall("final_answer", DATA)

    with OfflineServer(reply) as server:
        set_default_openai_client(server.bundle().client, use_for_tracing=False)
        context = await invoice_agent(None).run_async("Read it")
    assert context["invoice"] == DATA


async def test_a_fallback_to_another_provider_uses_its_form() -> None:
    down = Reply("down", status=401)
    with (
        OfflineServer(lambda _request: down, profile="openai") as first,
        OfflineServer(lambda _request: DATA, profile="plain") as second,
    ):
        spare = agents.OpenAIChatCompletionsModel("spare", second.bundle().client)
        agent = invoice_agent(first.bundle(), middleware=[Fallback(spare)])
        context = await agent.run_async("Read it")
        assert context["invoice"] == DATA
        async with agent.stream("Read it") as run:
            async for _ in run:
                pass
    assert run.context["invoice"] == DATA
    assert mode_of(first.requests[0]) == "native"
    assert mode_of(second.requests[-1]) == "prompt"


async def test_each_request_emits_events_and_repairs_pass_the_middleware() -> None:
    budget = Budget(max_model_calls=5)
    with OfflineServer([{"number": "A-1"}, DATA]) as server:
        agent = invoice_agent(server.bundle(api="chat"), output_mode="tool", middleware=[budget])
        finished: list[Any] = []
        with agent.subscribe(lambda e: finished.append(e) if isinstance(e, ModelCallFinished) else None):
            context = await agent.run_async("Read it")
    assert context["invoice"] == DATA
    assert [event.outcome for event in finished] == ["finished", "finished"]
    assert budget.used().model_calls == 2
    assert context["result"].context_wrapper.usage.requests == 2


async def test_concurrent_runs_find_the_mode() -> None:
    with OfflineServer(lambda _request: DATA, profile="plain") as server:
        agent = invoice_agent(server.bundle())
        contexts = await asyncio.gather(*(agent.run_async("Read it") for _ in range(20)))
        before = len(server.requests)
        await agent.run_async("Read it")
    assert all(context["invoice"] == DATA for context in contexts)
    assert len(server.requests) == before + 1


async def test_the_trace_contains_the_mode_and_the_attempts(traces: Any) -> None:
    with OfflineServer(lambda _request: DATA, profile="plain") as server:
        agent = invoice_agent(server.bundle())
        for _ in range(2):
            await agent.run_async("Read it")
    configs = [
        span.raw["span_data"].get("model_config") or {} for span in traces.spans(span_type="generation")
    ]
    assert sorted(one["output_attempts"] for one in configs if one.get("output_mode") == "prompt") == [1, 4]
    (span,) = [span for span in traces.spans(span_type="custom") if span.name == "structured_output"]
    attempts = span.raw["span_data"]["data"]["attempts"]
    assert [attempt["mode"] for attempt in attempts] == ["native", "tool", "prompt", "prompt"]
    assert "Unrecognized" in attempts[0]["refusal"]
