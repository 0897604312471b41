"""Agents that run on a custom provider, through the SDK's runner."""

from __future__ import annotations

import json
import sys
import threading
from asyncio import CancelledError, Event
from typing import Any

import agents
import pytest
from agents import RunState, SQLiteSession, WebSearchTool, function_tool
from openai.types.responses import ResponseOutputMessage
from pydantic import BaseModel

from kantan_agents import Agent, ContentSegment, Middleware, Provider, ProviderModel, ProviderResponse
from kantan_agents.errors import (
    AgentPainException,
    DeadlineExceededError,
    HostedToolError,
    InvalidOptionError,
    UntranslatableError,
)
from kantan_agents.middleware import Budget, Deadline, Fallback
from kantan_agents.models.protocol import StreamingProvider
from kantan_agents.testing import OfflineServer, ScriptedModel, ScriptedToolCall, assistant_message
from tests.clocks import ENOUGH, let_pass
from tests.models.protocol.scripted import Scripted, Streaming, call, text

UI = ContentSegment("ui", ui={"component": "Chart"})
IMAGE = ContentSegment("image", data="aGk=", mime_type="image/png")
KINDS = pytest.mark.parametrize("kind", [Scripted, Streaming])


def read(path: str) -> str:
    """Read a file."""
    return f"content of {path}"


async def run(
    agent: Agent[Any], input: Any, context: dict[str, Any] | None = None, **options: Any
) -> dict[str, Any]:
    """Run an agent, streamed if its provider streams."""
    model: Any = agent.sdk_agent.model
    if not hasattr(getattr(model, "provider", None), "stream"):
        return await agent.run_async(input, context, **options)
    async with agent.stream(input, context, **options) as stream:
        async for _ in stream:
            pass
    return stream.context


def conversation_of(provider: Scripted, turn: int = -1) -> list[tuple[str, list[str]]]:
    """Return the conversation that a provider got: role, and text, tool name or type of each segment."""
    return [
        (
            message.role,
            [
                part.text if part.text is not None else part.tool_call.name if part.tool_call else part.type
                for part in message.segments
            ],
        )
        for message in provider.contexts[turn].messages
    ]


@KINDS
async def test_responses_with_text_media_and_calls_are_processed_in_order(kind: type[Scripted]) -> None:
    first = [text("I look."), call("read", {"path": "a"}, "x"), IMAGE, call("read", {"path": "b"}, "x"), UI]
    provider = kind(first, [text("All "), UI, text("done.")])
    assert isinstance(provider, Provider)
    agent = Agent("reader", "You read for {{ $ctx.user }}.", tools=[read], model=provider)
    context = await run(agent, "Read.", {"user": "Aiko"})
    assert context["result"].final_output == "All done."
    assert provider.prompts == ["Read.", "Read."]
    last_context = provider.contexts[-1]
    assert (last_context.instructions, last_context.agent) == ("You read for Aiko.", "reader")
    assert last_context.run_id is not None
    assert last_context.tools["read"].parameters["required"] == ["path"]
    assert conversation_of(provider) == [
        ("user", ["Read."]),
        ("assistant", ["I look.", "read", "image", "read", "ui"]),
        ("tool", ["content of a"]),
        ("tool", ["content of b"]),
    ]
    answers = [message.tool_call_id for message in last_context.messages if message.role == "tool"]
    calls = [part.tool_call.id for part in last_context.messages[1].segments if part.tool_call is not None]
    assert answers == calls
    assert len(set(calls)) == 2
    assert last_context.messages[2].tool_name == "read"


async def test_tools_keep_their_order_and_tool_rules_hide_some() -> None:
    def write(path: str) -> str:
        return path

    provider = Scripted(call("read", {"path": "a"}), text("done"))
    agent = Agent("a", "x", tools=[write, read], handoffs=[Agent("other", "y")], model=provider)
    await agent.run_async("Go.", {"tool_rules": {"deny": ["write"]}})
    first, second = (list(context.tools) for context in provider.contexts)
    assert first == second == ["read", "transfer_to_other"]
    assert provider.contexts[0].tools["read"] == provider.contexts[1].tools["read"]


async def test_the_context_has_only_the_settings_that_were_set() -> None:
    provider = Scripted(text("done"))
    settings = agents.ModelSettings(temperature=0.5, max_tokens=7, extra_args={"k": 1})
    await Agent("a", "x", model=provider, model_settings=settings).run_async("Go.")
    assert provider.contexts[0].settings == {"temperature": 0.5, "max_tokens": 7, "extra_args": {"k": 1}}


@KINDS
async def test_a_response_without_segments_is_an_empty_text(kind: type[Scripted]) -> None:
    context = await run(Agent("a", "x", model=kind([])), "Go.")
    assert context["result"].final_output == ""


@KINDS
async def test_usage_is_counted_in_any_spelling(kind: type[Scripted]) -> None:
    spelled = {
        "inputTokens": 10,
        "completion_tokens": 4,
        "cache_read_input_tokens": 3,
        "total_tokens": "many",
    }
    provider = kind(ProviderResponse([text("hi")], {"usage": spelled}))
    context = await run(Agent("a", "x", model=provider, middleware=[Budget(max_tokens=100)]), "Go.")
    usage = context["result"].context_wrapper.usage
    assert (usage.requests, usage.input_tokens, usage.output_tokens, usage.total_tokens) == (1, 10, 4, 14)
    assert usage.input_tokens_details.cached_tokens == 3


async def test_the_protocols_json_is_a_valid_response() -> None:
    answer = {"segments": [{"type": "text", "text": "hi"}], "metadata": {"usage": "none"}}
    context = await Agent("a", "x", model=Scripted(answer)).run_async("Go.")
    assert context["result"].final_output == "hi"


@KINDS
@pytest.mark.parametrize("answer", [None, "hi", 3, {}, {"segments": [{"type": "text"}]}, ["hi"]])
async def test_any_other_response_raises_e51(kind: type[Scripted], answer: Any) -> None:
    class Wrong(kind):  # type: ignore[valid-type]
        async def generate(self, prompt: str, context: Any) -> Any:
            return answer

        if kind is Streaming:

            async def stream(self, prompt: str, context: Any) -> Any:
                yield text("so far ")
                yield answer

    with pytest.raises(AgentPainException) as caught:
        await run(Agent("a", "x", model=Wrong()), "Go.")
    assert (caught.value.code, caught.value.provider) == ("E51", "scripted")


@KINDS
async def test_an_error_of_a_provider_propagates(kind: type[Scripted]) -> None:
    error = LookupError("no key")
    with pytest.raises(LookupError) as caught:
        await run(Agent("a", "x", model=kind(error)), "Go.")
    assert caught.value is error


@KINDS
async def test_a_provider_that_hangs_is_cancelled(kind: type[Scripted]) -> None:
    ended: list[str] = []

    class Hanging(kind):  # type: ignore[valid-type]
        async def generate(self, prompt: str, context: Any) -> Any:
            try:
                let_pass()
                await Event().wait()
            except CancelledError:
                ended.append("cancelled")
                raise

    provider = Hanging()
    with pytest.raises(DeadlineExceededError):
        await run(Agent("a", "x", model=provider, middleware=[Deadline(ENOUGH)]), "Go.")
    assert ended == ["cancelled"]
    assert getattr(provider, "closed", 1) == 1


async def test_a_stream_that_is_abandoned_is_closed() -> None:
    provider = Streaming(text("abc"))
    assert isinstance(provider, StreamingProvider)
    async with Agent("a", "x", model=provider).stream("Go.") as stream:
        async for event in stream:
            if event.type == "text_delta":
                break
    assert provider.closed == 1


async def test_a_stream_method_that_returns_no_stream_raises_e51() -> None:
    provider: Any = Scripted()
    provider.stream = lambda prompt, context: [text("a")]
    with pytest.raises(AgentPainException, match="stream must be an async generator, it returned list"):
        await run(Agent("a", "Do.", model=provider), "Go.")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 cannot tell who cancelled")
@KINDS
async def test_a_cancelled_error_without_a_cancellation_raises_e51(kind: type[Scripted]) -> None:
    agent = Agent("a", "Do.", model=kind(CancelledError()))
    with pytest.raises(AgentPainException, match="it was not cancelled"):
        await run(agent, "Go.")


@KINDS
async def test_text_after_calls_does_not_separate_them_from_their_results(kind: type[Scripted]) -> None:
    made = [call("read", {"path": "a"}, "1"), call("read", {"path": "b"}, "2"), text("tail")]
    with OfflineServer([ScriptedToolCall("transfer_to_clerk", {}), "done"]) as server:
        bundle = server.bundle()
        chat = agents.OpenAIChatCompletionsModel(bundle.model, bundle.client)
        desk = Agent("desk", "Do.", model=chat)
        provider = kind(made, [call("transfer_to_desk")])
        clerk = Agent("clerk", "Do.", model=provider, tools=[read], handoffs=[desk])
        await run(clerk, "Go.")
        sent = server.requests[0].body["messages"]
    assert conversation_of(provider)[1] == ("assistant", ["read", "read", "tail"])
    assert [message["role"] for message in sent][2:5] == ["assistant", "tool", "tool"]
    assert sent[2]["content"] == "tail"


async def test_a_large_conversation_does_not_block_the_event_loop() -> None:
    threads: set[int] = set()

    class Item(dict[str, Any]):
        def get(self, *name: Any) -> Any:
            threads.add(threading.get_ident())
            return super().get(*name)

    provider = Scripted(text("b"))
    items: Any = [Item({"role": "user", "content": "a" * 300_000})]
    await ProviderModel(provider).get_response(
        None, items, agents.ModelSettings(), [], None, [], agents.ModelTracing.DISABLED
    )
    assert threads
    assert threading.get_ident() not in threads
    assert provider.prompts == ["a" * 300_000]


async def test_a_streaming_provider_streams_letter_by_letter() -> None:
    provider = Streaming([text("ab"), call("read", {"path": "a"})], text("cd"))
    async with Agent("a", "x", tools=[read], model=provider).stream("Go.") as stream:
        deltas_seen = [getattr(event, "text", event.type) async for event in stream if "delta" in event.type]
    assert deltas_seen == ["a", "b", "tool_arguments_delta", "c", "d"]
    assert stream.context["result"].final_output == "cd"


@KINDS
async def test_tools_that_openai_runs_raise_e59(kind: type[Scripted]) -> None:
    agent = Agent("a", "x", tools=[read, WebSearchTool()], model=kind())
    with pytest.raises(HostedToolError) as caught:
        await run(agent, "Go.")
    assert (caught.value.code, caught.value.tools) == ("E59", ("web_search",))


async def test_state_stored_at_openai_is_rejected() -> None:
    with pytest.raises(InvalidOptionError, match="previous_response_id"):
        await Agent("a", "x", model=Scripted()).run_async("Go.", previous_response_id="resp_1")


async def test_content_that_cannot_be_translated_raises_e52() -> None:
    items: Any = [{"role": "user", "content": [{"type": "input_file", "file_id": "file_1"}]}]
    with pytest.raises(UntranslatableError) as caught:
        await Agent("a", "x", model=Scripted()).run_async(items)
    assert caught.value.code == "E52"


async def test_images_are_accepted_as_input_and_as_tool_results() -> None:
    @function_tool
    def photo() -> Any:
        """Take one."""
        return agents.ToolOutputImage(image_url="data:image/png;base64,aGk=")

    provider = Scripted(call("photo"), text("nice"))
    image = {"type": "input_image", "image_url": "data:image/jpeg;base64,aGk=", "detail": "auto"}
    items: Any = [{"role": "user", "content": [{"type": "input_text", "text": "See"}, image]}]
    await Agent("a", "x", tools=[photo], model=provider).run_async(items)
    assert provider.prompts == ["See", "See"]
    user, _, tool = provider.contexts[-1].messages
    assert [part.mime_type for part in user.segments] == [None, "image/jpeg"]
    assert [(part.type, part.data, part.mime_type) for part in tool.segments] == [
        ("image", "aGk=", "image/png")
    ]


async def test_a_session_and_the_next_input_preserve_all_segments() -> None:
    provider = Scripted([text("a"), UI, IMAGE, text("b")], text("c"), text("d"))
    agent, session = Agent("a", "x", model=provider), SQLiteSession("s")
    context = await agent.run_async("One", session=session)
    await agent.run_async("Two", session=session)
    session.close()
    conversation = [("user", ["One"]), ("assistant", ["a", "ui", "image", "b"]), ("user", ["Two"])]
    assert conversation_of(provider) == conversation
    items = json.loads(json.dumps(context["result"].to_input_list()))
    await agent.run_async([*items, {"role": "user", "content": "Two"}])
    assert conversation_of(provider) == conversation


@KINDS
async def test_a_run_waiting_for_an_approval_resumes_from_json(kind: type[Scripted]) -> None:
    @function_tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    extra = ContentSegment(
        "tool_call", tool_call=call("pay", {"amount": 3}, "c").tool_call, extra={"sign": "x"}
    )
    provider = kind([text("I pay."), UI, extra], text("done"))
    agent = Agent("a", "x", tools=[pay], model=provider)
    context = await run(agent, "Pay.")
    (waiting,) = context["result"].interruptions
    stored = json.dumps(context["result"].to_state().to_json())
    state = await RunState.from_json(agent.sdk_agent, json.loads(stored))
    state.approve(state.get_interruptions()[0])
    context = await run(agent, state)
    assert context["result"].final_output == "done"
    assert waiting.name == "pay"
    assert conversation_of(provider) == [
        ("user", ["Pay."]),
        ("assistant", ["I pay.", "ui", "pay"]),
        ("tool", ["paid 3"]),
    ]
    assert provider.contexts[-1].messages[1].segments[-1].extra == {"sign": "x"}


async def test_hand_offs_work_from_a_provider_to_a_model_and_back() -> None:
    provider = Scripted([IMAGE, call("transfer_to_writer")], text("I am back."))
    with OfflineServer([ScriptedToolCall("transfer_to_reader", {})]) as server:
        reader = Agent("reader", "x", model=provider)
        writer = Agent("writer", "y", model=server.bundle(api="responses"), handoffs=[reader])
        reader.sdk_agent.handoffs.append(writer.sdk_agent)
        context = await reader.run_async("Go.")
        sent = json.dumps(server.requests[0].body["input"])
    assert context["result"].final_output == "I am back."
    assert context["result"].last_agent.name == "reader"
    assert "provider_data" not in sent
    assert "aGk=" not in sent
    assert [kind for kind, _ in conversation_of(provider)] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
    ]
    assert [context.agent for context in provider.contexts] == ["reader", "reader"]


async def test_an_sdk_agent_can_use_a_provider() -> None:
    provider = Scripted(call("read", {"path": "a"}), text('{"name": "Kobe"}'))

    class Place(BaseModel):
        name: str

    agent = agents.Agent(
        "plain", model=ProviderModel(provider), tools=[function_tool(read)], output_type=Place
    )
    result = await agents.Runner.run(agent, "Go.")
    assert result.final_output == Place(name="Kobe")
    schema = provider.contexts[0].output_schema
    assert schema is not None
    assert list(schema["properties"]) == ["name"]
    assert (provider.contexts[0].agent, provider.contexts[0].run_id) == ("", None)


@KINDS
async def test_the_sdks_stream_has_the_events_of_the_responses_api(kind: type[Scripted]) -> None:
    provider = kind([text("ab"), UI, call("read", {"path": "a"}, "c")], [text("cd")])
    agent = agents.Agent("plain", model=ProviderModel(provider), tools=[function_tool(read)])
    result = agents.Runner.run_streamed(agent, "Go.")
    events = [event async for event in result.stream_events()]
    raw = [event.data for event in events if event.type == "raw_response_event"]
    first = raw[: [event.type for event in raw].index("response.completed") + 1]
    assert [event.sequence_number for event in first] == list(range(len(first)))
    deltas = ["response.output_text.delta"] * (2 if kind is Streaming else 1)
    assert [event.type for event in first] == [
        "response.created",
        "response.output_item.added",
        "response.content_part.added",
        *deltas,
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ]
    items = [event.name for event in events if event.type == "run_item_stream_event"]
    assert items == ["message_output_created", "tool_called", "tool_output", "message_output_created"]
    assert result.final_output == "cd"
    assert conversation_of(provider)[1] == ("assistant", ["ab", "ui", "read"])


async def test_middleware_can_change_calls_to_a_provider() -> None:
    class Shout(Middleware):
        async def model_call(self, call: Any, call_next: Any) -> Any:
            call.instructions = "LOUD"
            answer = await call_next(call)
            answer.output[0].content[0].text += "!"
            return answer

    provider = Scripted([text("hi"), UI])
    context = await Agent("a", "x", model=provider, middleware=[Shout()]).run_async("Go.")
    assert context["result"].final_output == "hi!"
    assert provider.contexts[0].instructions == "LOUD"


async def test_a_provider_can_replace_a_failing_model() -> None:
    class Second(Middleware):
        async def model_call(self, call: Any, call_next: Any) -> Any:
            call.model = Scripted(text("from the second"))
            return await call_next(call)

    failing = Scripted(LookupError("no key"), LookupError("no key"))
    agent = Agent("a", "x", model=failing, middleware=[Fallback(Scripted(text("instead")))])
    assert (await agent.run_async("Go."))["result"].final_output == "instead"
    agent = Agent("a", "x", model=failing, middleware=[Second()])
    assert (await agent.run_async("Go."))["result"].final_output == "from the second"


@pytest.mark.parametrize("wrong", [object(), Scripted, 3, type("NoName", (), {"generate": 1})()])
def test_an_object_that_is_not_a_provider_is_rejected(wrong: Any) -> None:
    with pytest.raises(InvalidOptionError):
        Agent("a", "x", model=wrong)
    with pytest.raises(InvalidOptionError):
        ProviderModel(wrong)


async def test_each_agent_of_a_run_uses_its_own_provider() -> None:
    inner = Scripted(text("from inside"), name="inner")
    outer = Scripted(call("ask", {"input": "Who?"}), text("done"), name="outer")
    helper = Agent("helper", "x", model=inner)
    helper_tool = helper.sdk_agent.as_tool("ask", "Ask.")
    context = await Agent("boss", "y", tools=[helper_tool], model=outer).run_async("Go.")
    assert context["result"].final_output == "done"
    assert conversation_of(outer)[-1] == ("tool", ["from inside"])
    assert inner.prompts == ["Who?"]
    assert repr(context["result"].last_agent.model) == "ProviderModel('outer')"


async def test_a_model_and_a_provider_leave_the_same_history() -> None:
    ours = await Agent("a", "x", model=Scripted(text("hi"))).run_async("Go.")
    theirs = await Agent("a", "x", model=ScriptedModel([[assistant_message("hi")]])).run_async("Go.")
    assert ours["history"] == theirs["history"]


@KINDS
@pytest.mark.parametrize(("reason", "is_cut"), [("MAX_TOKENS", True), ("max_tokens", True), ("stop", False)])
async def test_an_answer_that_was_cut_off_says_so(kind: type[Scripted], reason: str, is_cut: bool) -> None:
    provider = kind(*[ProviderResponse([text("ab")], {"finish_reason": reason})] * 2)
    result = agents.Runner.run_streamed(agents.Agent("plain", model=ProviderModel(provider)), "Go.")
    raw = [event.data async for event in result.stream_events() if event.type == "raw_response_event"]
    last = raw[-1]
    assert last.type == "response.completed"
    assert (last.response.incomplete_details is not None) == is_cut
    whole = await agents.Runner.run(agents.Agent("plain", model=ProviderModel(provider)), "Go.")
    (item,) = whole.raw_responses[0].output
    assert isinstance(item, ResponseOutputMessage)
    assert item.status == ("incomplete" if is_cut else "completed")
