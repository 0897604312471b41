"""The HTTP providers against a local server: requests, responses, streams and failures."""

from __future__ import annotations

import asyncio
import base64
import copy
import gc
import pickle
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from agents.model_settings import MCPToolChoice
from blockbuster import blockbuster_ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from kantan_agents import AnthropicProvider, ContentSegment, GeminiProvider, Provider, ProviderResponse
from kantan_agents.errors import (
    AgentPainException,
    InvalidOptionError,
    KantanAgentsError,
    ProviderRequestError,
    UntranslatableError,
)
from kantan_agents.models.protocol import (
    ArgumentsPiece,
    Message,
    ProviderContext,
    ReasoningPiece,
    StreamingProvider,
    ToolSpec,
)
from kantan_agents.models.protocol.http.api import events_of
from kantan_agents.models.protocol.http.conversation import size_of
from kantan_agents.models.protocol.http.provider import HttpRequest
from tests.clocks import ENOUGH, let_pass
from tests.models.protocol.wire_server import Body, WireServer, recorded

KEY = "sk-secret-123"
NOTHING = ProviderContext()


def claude(url: str, **options: Any) -> AnthropicProvider:
    return AnthropicProvider("claude-sonnet-4-5", api_key=KEY, base_url=url, **options)


def gemini(url: str, **options: Any) -> GeminiProvider:
    return GeminiProvider("gemini-3-flash", api_key=KEY, base_url=url, **options)


BOTH = pytest.mark.parametrize("make", [claude, gemini])
ANSWERS = {claude: "anthropic_tool_use", gemini: "gemini_function_calls"}
STREAMS = {claude: "anthropic_stream", gemini: "gemini_stream"}
Make = Callable[..., Any]


async def streamed(provider: Any, context: ProviderContext = NOTHING) -> list[Any]:
    return [piece async for piece in provider.stream("hi", context)]


@BOTH
async def test_generate_sends_a_request_and_returns_the_response(make: Make) -> None:
    with WireServer([recorded(ANSWERS[make])]) as server:
        async with make(server.url) as provider:
            assert isinstance(provider, Provider)
            assert isinstance(provider, StreamingProvider)
            response = await provider.generate("hi", NOTHING)
    assert response.tool_calls[0].name == "get_weather"
    path, body, headers = server.requests[0]
    if make is claude:
        assert path == "/v1/messages"
        assert headers["x-api-key"] == KEY
        assert headers["anthropic-version"] == "2023-06-01"
        assert body == {
            "model": "claude-sonnet-4-5",
            "max_tokens": 8192,
            "messages": [{"role": "user", "content": "hi"}],
        }
    else:
        assert path == "/v1beta/models/gemini-3-flash:generateContent"
        assert headers["x-goog-api-key"] == KEY
        assert body == {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


@BOTH
async def test_stream_yields_the_segments_of_the_response(make: Make) -> None:
    with WireServer([Body(events=recorded(STREAMS[make]))]) as server:
        async with make(server.url) as provider:
            pieces = await streamed(provider)
    last = pieces.pop()
    assert isinstance(last, ProviderResponse)
    assert last.metadata["usage"]["output_tokens"] == (89 if make is claude else 32)
    said = "".join(piece.text or "" for piece in pieces)
    assert said == ("Let me check\u2028that." if make is claude else "I will look.")
    calls = [piece.tool_call for piece in pieces if piece.tool_call]
    assert [(call.name, call.args) for call in calls] == [("get_weather", {"city": "Paris"})]
    if make is claude:
        (thinking,) = pieces[0].extra["anthropic"]["before"]
        assert thinking == {
            "type": "thinking",
            "thinking": "The weather in Paris.",
            "signature": "EqQBCgIYAhIM",
        }
    else:
        assert server.requests[0][0].endswith(":streamGenerateContent?alt=sse")
        assert pieces[0].extra["gemini"]["before"] == [{"text": "Weighing", "thought": True}]
        assert pieces[-1].extra["gemini"] == {
            "fields": {"thoughtSignature": "CrICAdHt"},
            "after": [{"text": "", "thoughtSignature": "EjQK"}],
        }


def context_with(**settings: Any) -> ProviderContext:
    tools = {"look": ToolSpec("look", "Looks."), "go": ToolSpec("go")}
    return ProviderContext(tools=tools, instructions="Be brief.", settings=settings)


@pytest.mark.parametrize(
    ("choice", "to_claude", "to_gemini"),
    [
        ("auto", {"type": "auto"}, {"mode": "AUTO"}),
        ("none", {"type": "none"}, {"mode": "NONE"}),
        ("required", {"type": "any"}, {"mode": "ANY"}),
        ("go", {"type": "tool", "name": "go"}, {"mode": "ANY", "allowedFunctionNames": ["go"]}),
    ],
)
async def test_model_settings_are_translated(choice: str, to_claude: Any, to_gemini: Any) -> None:
    context = context_with(
        tool_choice=choice,
        temperature=0.5,
        top_p=0.9,
        max_tokens=7,
        verbosity="low",
        extra_args={"stop": "END", "timeout": 30},
    )
    with WireServer([recorded("anthropic_citations"), recorded("gemini_image")]) as server:
        async with claude(server.url) as one, gemini(server.url) as other:
            await one.generate("hi", context)
            await other.generate("hi", context)
    body = server.requests[0][1]
    assert body["tool_choice"] == to_claude
    assert (body["temperature"], body["top_p"], body["max_tokens"]) == (0.5, 0.9, 7)
    assert body["stop_sequences"] == ["END"] and "timeout" not in body
    assert body["system"] == "Be brief."
    assert [tool["name"] for tool in body["tools"]] == ["look", "go"]
    body = server.requests[1][1]
    assert body["toolConfig"] == {"functionCallingConfig": to_gemini}
    assert body["generationConfig"] == {
        "temperature": 0.5,
        "topP": 0.9,
        "maxOutputTokens": 7,
        "stopSequences": ["END"],
    }
    assert "timeout" not in body
    assert body["systemInstruction"] == {"parts": [{"text": "Be brief."}]}


async def test_extra_body_and_extra_headers_are_sent() -> None:
    context = context_with(
        max_tokens=7,
        extra_body={"generationConfig": {"thinkingConfig": {"thinkingLevel": "low"}}},
        extra_headers={"x-more": "1"},
    )
    with WireServer([recorded("gemini_image")]) as server:
        async with gemini(server.url) as provider:
            await provider.generate("hi", context)
    _, body, headers = server.requests[0]
    assert body["generationConfig"] == {"maxOutputTokens": 7, "thinkingConfig": {"thinkingLevel": "low"}}
    assert headers["x-more"] == "1"


@BOTH
async def test_an_invalid_tool_choice_or_name_raises_before_the_request(make: Make) -> None:
    async with make("http://127.0.0.1:9") as provider:
        with pytest.raises(InvalidOptionError, match="tool_choice"):
            await provider.generate("hi", context_with(tool_choice="fly"))
        with pytest.raises(UntranslatableError, match=r"tools\[0\]\.name"):
            await provider.generate("hi", ProviderContext(tools={"a b": ToolSpec("a b")}))


async def test_a_structured_output_uses_the_apis_own_field() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    with WireServer([recorded("anthropic_citations"), recorded("gemini_image")]) as server:
        async with claude(server.url) as one, gemini(server.url) as other:
            await one.generate("hi", ProviderContext(output_schema=schema))
            await other.generate("hi", ProviderContext(output_schema=schema))
    sent = {"type": "json_schema", "schema": {**schema, "additionalProperties": False}}
    assert server.requests[0][1]["output_config"] == {"format": sent}
    assert server.requests[1][1]["generationConfig"] == {
        "responseMimeType": "application/json",
        "responseJsonSchema": schema,
    }
    assert not GeminiProvider("gemini-2.5-pro", api_key="").supports_output_schema
    assert GeminiProvider("gemini-3-pro", api_key="").supports_output_schema
    assert not AnthropicProvider("claude-3-haiku", api_key="", output_schema=False).supports_output_schema


@BOTH
async def test_a_conversation_of_another_model_is_adapted(make: Make) -> None:
    call = ContentSegment.of_call("look", "no object", "fc|1")
    context = ProviderContext(
        messages=(
            Message("user", (ContentSegment("text", text="hi", extra={"detail": "high"}),)),
            Message("assistant", (call,)),
            Message("tool", (ContentSegment.of_text("no"),), "fc|1", "look"),
            Message("system", (ContentSegment.of_text("Hurry."),)),
        )
    )
    with WireServer([recorded(ANSWERS[make])]) as server:
        async with make(server.url) as provider:
            await provider.generate("hi", context)
    body = server.requests[0][1]
    if make is claude:
        use, result = body["messages"][1]["content"][0], body["messages"][2]["content"][0]
        assert use["input"] == {"not_an_object": "no object"}
        assert use["id"] == result["tool_use_id"] != "fc|1"
        assert body["messages"][3] == {"role": "user", "content": "Hurry."}
    else:
        part = body["contents"][1]["parts"][0]
        assert part["thoughtSignature"] == "skip_thought_signature_validator"
        assert part["functionCall"]["args"] == {"not_an_object": "no object"}
        assert body["contents"][3] == {"role": "user", "parts": [{"text": "Hurry."}]}


@BOTH
async def test_large_media_do_not_block_the_event_loop(make: Make) -> None:
    data = base64.b64encode(bytes(1_000_000)).decode()
    image = ContentSegment("image", data=data, mime_type="image/png")
    context = ProviderContext(messages=(Message("user", (image,)),))
    answer = recorded("gemini_image")
    answer["candidates"][0]["content"]["parts"][1]["inlineData"]["data"] = data
    with WireServer([recorded("anthropic_citations") if make is claude else answer]) as server:
        async with make(server.url) as provider:
            with blockbuster_ctx():
                response = await provider.generate("hi", context)
    assert data in str(server.requests[0][1])
    if make is gemini:
        assert response.segments[1].data == data


ERRORS = [
    (429, {"retry-after": "7"}, b'{"error": {"message": "slow down"}}', "HTTP 429: slow down", 7.0),
    (529, {"retry-after-ms": "50"}, b'{"error": {"message": "overloaded"}}', "HTTP 529: overloaded", 0.05),
    (500, {}, b"<html>oops</html>", "HTTP 500: <html>oops</html>", None),
    (401, {}, b'{"error": {"message": "bad key sk-secret-123"}}', "HTTP 401: bad key ***", None),
    (302, {"location": "http://127.0.0.1:9/"}, b"", "HTTP 302: ", None),
    (
        503,
        {"retry-after": "soon"},
        b'[{"error": {"code": 503, "message": "busy", "details": [{"retryDelay": "1.5s"}]}}]',
        "HTTP 503: busy",
        1.5,
    ),
]


@BOTH
@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize(("status", "headers", "raw", "reason", "wait"), ERRORS)
async def test_a_rejected_request_raises_e53(
    make: Make, is_streamed: bool, status: int, headers: Any, raw: bytes, reason: str, wait: float | None
) -> None:
    with WireServer([Body(raw=raw, status=status, headers=headers)]) as server:
        async with make(server.url) as provider:
            with pytest.raises(ProviderRequestError) as caught:
                await (streamed(provider) if is_streamed else provider.generate("hi", NOTHING))
    error = caught.value
    assert (error.code, error.status, error.reason, error.retry_after) == ("E53", status, reason, wait)
    assert KEY not in repr(error) + str(error)
    assert pickle.loads(pickle.dumps(error)).retry_after == wait


@BOTH
async def test_an_unreachable_or_interrupted_api_raises_e53(make: Make) -> None:
    async with make("http://127.0.0.1:1") as provider:
        with pytest.raises(ProviderRequestError, match="connection error: ConnectError") as caught:
            await provider.generate("hi", NOTHING)
    assert caught.value.status is None
    assert isinstance(caught.value.__cause__, httpx.ConnectError)
    assert not caught.value.__cause__.request.headers
    events = recorded(STREAMS[make])[:-2]
    with WireServer([Body(breaks=True), Body(events=events), Body(hangs=True)]) as server:
        async with make(server.url, timeout=ENOUGH) as provider:
            with pytest.raises(ProviderRequestError, match="RemoteProtocolError"):
                await provider.generate("hi", NOTHING)
            with pytest.raises(ProviderRequestError, match="connection closed before"):
                await streamed(provider)
            hanging = asyncio.create_task(provider.generate("hi", NOTHING))
            assert await asyncio.to_thread(server.hanging.wait, ENOUGH)
            for _ in range(100):  # the timeout applies to each read
                if hanging.done():
                    break
                let_pass()
                await asyncio.sleep(0.05)
            assert hanging.done()
            with pytest.raises(ProviderRequestError, match="ReadTimeout"):
                await hanging


@BOTH
async def test_an_unreadable_response_raises_e51_or_becomes_a_text(make: Make) -> None:
    odd: list[Any] = [b"<html>hi</html>", b"[1]", b'{"content": [3], "candidates": [3]}', b"\xff"]
    with WireServer([Body(raw=raw) for raw in odd * 2]) as server:
        async with make(server.url) as strict, make(server.url, on_unreadable="text") as mild:
            for _ in odd:
                with pytest.raises(AgentPainException) as caught:
                    await strict.generate("hi", NOTHING)
                assert caught.value.code == "E51"
            for _ in odd:
                response = await mild.generate("hi", NOTHING)
                assert response.metadata["error"]["code"] == "E51"
                assert "Invalid answer" in response.text
    with WireServer([Body(raw=b"{}"), Body(events=["no json"]), Body(events=["[1]"])]) as server:
        async with make(server.url) as strict, make(server.url, on_unreadable="text") as mild:
            with pytest.raises(AgentPainException, match="not events"):
                await streamed(strict)
            with pytest.raises(AgentPainException, match="not valid JSON"):
                await streamed(strict)
            (said,) = await streamed(mild)
            assert said.metadata["error"]["code"] == "E51"


async def test_an_error_event_in_a_stream_raises_e53_with_its_status() -> None:
    broken = [
        *recorded("anthropic_stream")[:9],
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    ]
    with WireServer([Body(events=broken)]) as server:
        async with claude(server.url) as provider:
            with pytest.raises(ProviderRequestError, match="overloaded_error: Overloaded") as caught:
                await streamed(provider)
    assert caught.value.status == 529
    busy = {"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}
    with WireServer([Body(events=[*recorded("gemini_stream")[:2], busy])]) as server:
        async with gemini(server.url) as provider:
            with pytest.raises(ProviderRequestError, match="UNAVAILABLE: busy") as caught:
                await streamed(provider)
    assert caught.value.status == 503


async def test_a_blocked_response_raises_an_error() -> None:
    refused = {**recorded("anthropic_citations"), "stop_reason": "refusal"}
    mangled = {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "index": 0}]}
    said = {"role": "model", "parts": [{"text": "To begin"}]}
    unsafe = {"candidates": [{"content": said, "finishReason": "SAFETY", "index": 0}]}
    blocked = recorded("gemini_blocked")
    events = [Body(events=[blocked]), Body(events=[unsafe])]
    with WireServer([refused, blocked, unsafe, mangled, *events]) as server:
        async with claude(server.url) as one, gemini(server.url) as other:
            with pytest.raises(ProviderRequestError, match="refused to answer"):
                await one.generate("hi", NOTHING)
            for reason in ("PROHIBITED_CONTENT", "SAFETY"):
                with pytest.raises(ProviderRequestError, match=f"blocked: {reason}"):
                    await other.generate("hi", NOTHING)
            with pytest.raises(AgentPainException, match="MALFORMED_FUNCTION_CALL"):
                await other.generate("hi", NOTHING)
            for reason in ("PROHIBITED_CONTENT", "SAFETY"):
                with pytest.raises(ProviderRequestError, match=f"blocked: {reason}"):
                    await streamed(other)


def ended_by(reason: str, parts: list[Any], *, is_streamed: bool) -> Any:
    body = {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": reason, "index": 0}]
    }
    return Body(events=[body]) if is_streamed else body


async def text_of(provider: GeminiProvider, *, is_streamed: bool) -> str:
    pieces = await streamed(provider) if is_streamed else (await provider.generate("hi", NOTHING)).segments
    return "".join(piece.text or "" for piece in pieces if isinstance(piece, ContentSegment))


SAID: list[Any] = [{"text": "To begin"}]
STREAMED = pytest.mark.parametrize("is_streamed", [False, True], ids=["generate", "stream"])


@STREAMED
@pytest.mark.parametrize(
    "reason", ["STOP", "MAX_TOKENS", "FINISH_REASON_UNSPECIFIED", "OTHER", "NO_IMAGE", "NEW"]
)
async def test_only_known_finish_reasons_of_gemini_lose_an_answer(reason: str, is_streamed: bool) -> None:
    with WireServer([ended_by(reason, SAID, is_streamed=is_streamed)]) as server:
        async with gemini(server.url) as provider:
            assert await text_of(provider, is_streamed=is_streamed) == "To begin"


@STREAMED
async def test_an_unknown_finish_reason_is_logged(
    is_streamed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with WireServer([ended_by("NEW", SAID, is_streamed=is_streamed)]) as server:
        async with gemini(server.url) as provider:
            await text_of(provider, is_streamed=is_streamed)
    (record,) = caplog.records
    assert (record.message, vars(record)["finish_reason"]) == ("answer_ended_early", "NEW")


@STREAMED
@pytest.mark.parametrize(
    "reason",
    [
        *("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"),
        *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
    ],
)
async def test_the_known_bad_finish_reasons_of_gemini_are_refusals(reason: str, is_streamed: bool) -> None:
    with WireServer([ended_by(reason, SAID, is_streamed=is_streamed)]) as server:
        async with gemini(server.url) as provider:
            with pytest.raises(ProviderRequestError, match=f"blocked: {reason}"):
                await text_of(provider, is_streamed=is_streamed)


@STREAMED
@pytest.mark.parametrize(
    "reason",
    [
        *("MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL"),
        *("TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE"),
    ],
)
async def test_a_reply_that_gemini_discards_cannot_be_read(reason: str, is_streamed: bool) -> None:
    with WireServer([ended_by(reason, [], is_streamed=is_streamed)]) as server:
        async with gemini(server.url) as provider:
            with pytest.raises(AgentPainException, match=f"discarded the model's answer: {reason}"):
                await text_of(provider, is_streamed=is_streamed)


@STREAMED
@pytest.mark.parametrize("reason", ["OTHER", "NEW"])
async def test_an_unknown_finish_reason_without_content_is_not_an_empty_answer(
    reason: str, is_streamed: bool
) -> None:
    with WireServer([ended_by(reason, [], is_streamed=is_streamed)]) as server:
        async with gemini(server.url) as provider:
            with pytest.raises(ProviderRequestError, match=f"ended without an answer: {reason}"):
                await text_of(provider, is_streamed=is_streamed)


@STREAMED
async def test_a_prompt_blocked_for_an_unknown_reason_is_blocked(is_streamed: bool) -> None:
    blocked = {"promptFeedback": {"blockReason": "NEW"}}
    with WireServer([Body(events=[blocked]) if is_streamed else blocked]) as server:
        async with gemini(server.url) as provider:
            with pytest.raises(ProviderRequestError, match="blocked: NEW"):
                await text_of(provider, is_streamed=is_streamed)


@STREAMED
async def test_an_unknown_stop_reason_of_claude_keeps_the_answer(is_streamed: bool) -> None:
    body = recorded(STREAMS[claude] if is_streamed else ANSWERS[claude])
    if is_streamed:
        body[-2]["delta"]["stop_reason"] = "new"
    else:
        body["stop_reason"] = "new"
    with WireServer([Body(events=body) if is_streamed else body]) as server:
        async with claude(server.url) as provider:
            assert await (streamed(provider) if is_streamed else provider.generate("hi", NOTHING))


@BOTH
@pytest.mark.parametrize("ends_by", ["cancel", "break"])
async def test_leaving_a_stream_early_closes_the_connection(make: Make, ends_by: str) -> None:
    begun = asyncio.Event()
    events = recorded(STREAMS[make])[: 9 if make is claude else 2]

    with WireServer([Body(events=events, hangs=True)]) as server:
        async with make(server.url) as provider:

            async def read() -> None:
                pieces = provider.stream("hi", NOTHING)
                try:
                    async for _ in pieces:
                        begun.set()
                        if ends_by == "break":
                            break
                finally:
                    await pieces.aclose()

            task = asyncio.ensure_future(read())
            await begun.wait()
            if ends_by == "cancel":
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            else:
                await task
            assert await asyncio.to_thread(server.left.wait, 60)


@BOTH
def test_one_provider_serves_many_event_loops(make: Make) -> None:
    answers = [Body(recorded(ANSWERS[make]), headers={"connection": "keep-alive"}) for _ in range(8)]
    with WireServer(answers) as server:
        provider = make(server.url)

        async def ask() -> None:
            assert (await provider.generate("hi", NOTHING)).tool_calls
            await provider.aclose()

        for _ in range(4):
            asyncio.run(ask())
        threads = [threading.Thread(target=asyncio.run, args=(ask(),)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(provider._api._clients) == 0
    gc.collect()
    assert len(server.requests) == 8


@BOTH
def test_the_clients_of_closed_loops_are_released(make: Make) -> None:
    with WireServer([recorded(ANSWERS[make])] * 4) as server:
        provider = make(server.url)
        for _ in range(4):
            asyncio.run(provider.generate("hi", NOTHING))
        assert len(provider._api._clients) <= 1


async def test_truncated_arguments_are_kept_as_text() -> None:
    events = recorded("anthropic_stream")
    events[13]["delta"]["partial_json"] = '{"city": "Pa'
    del events[14]
    with WireServer([Body(events=events)]) as server:
        async with claude(server.url) as provider:
            pieces = await streamed(provider)
    (call,) = [piece.tool_call for piece in pieces[:-1] if piece.tool_call]
    assert call.args == '{"city": "Pa'


async def test_unknown_blocks_of_a_stream_are_kept_in_extra() -> None:
    def block(index: int, content: Any, *deltas: Any) -> list[Any]:
        found = [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        begin = {"type": "content_block_start", "index": index, "content_block": content}
        return [begin, *found, {"type": "content_block_stop", "index": index}]

    text = {"type": "text", "text": ""}
    cited = {"type": "char_location", "cited_text": "x"}
    search = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    events = [
        recorded("anthropic_stream")[0],
        *block(0, text, {"type": "text_delta", "text": "One. "}),
        *block(1, search, {"type": "input_json_delta", "partial_json": '{"query": "x"}'}),
        *block(
            2, text, {"type": "text_delta", "text": "Two."}, {"type": "citations_delta", "citation": cited}
        ),
        *block(3, {"type": "redacted_thinking", "data": "abc"}),
        *recorded("anthropic_stream")[-2:],
    ]
    with WireServer([Body(events=events)]) as server:
        async with claude(server.url) as provider:
            pieces = await streamed(provider)
    assert "".join(piece.text for piece in pieces[:-1]) == "One. Two."
    assert pieces[-2].extra["anthropic"] == {
        "before": [{**search, "input": {"query": "x"}}],
        "fields": {"citations": [cited]},
        "after": [{"type": "redacted_thinking", "data": "abc"}],
    }


@pytest.mark.parametrize(
    "event",
    [
        {"type": "message_start"},
        {"type": "content_block_start", "content_block": {"type": "text"}},
        {"type": "content_block_delta", "delta": {"type": "text_delta"}},
        {"no": "type"},
    ],
)
async def test_an_invalid_event_raises_e51(event: Any) -> None:
    with WireServer([Body(events=[event])]) as server:
        async with claude(server.url) as provider:
            with pytest.raises(AgentPainException, match="an event without"):
                await streamed(provider)


@pytest.mark.parametrize(
    ("provider", "variable"),
    [
        (AnthropicProvider, "ANTHROPIC_API_KEY"),
        (GeminiProvider, "GEMINI_API_KEY"),
        (GeminiProvider, "GOOGLE_API_KEY"),
    ],
)
def test_the_key_comes_from_the_argument_or_the_environment(
    provider: Any, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InvalidOptionError, match=variable) as caught:
        provider("some-model")
    assert caught.value.code == "E75"
    monkeypatch.setenv(variable, KEY)
    assert KEY not in repr(provider("some-model"))
    assert KEY not in repr(provider("some-model", api_key=KEY))
    assert provider("some-model", api_key="").name.endswith("/some-model")


def test_the_address_comes_from_the_argument_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:7/")
    monkeypatch.delenv("GEMINI_BASE_URL", raising=False)
    assert AnthropicProvider("m", api_key="")._api.base_url == "http://127.0.0.1:7"
    assert AnthropicProvider("m", api_key="", base_url="http://[::1]:8")._api.base_url == "http://[::1]:8"
    assert GeminiProvider("m", api_key="")._api.base_url == "https://generativelanguage.googleapis.com"


@BOTH
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("base_url", "ftp://example.com"),
        ("base_url", "example.com"),
        ("base_url", 7),
        ("timeout", 0),
        ("timeout", "5"),
        ("on_unreadable", "ignore"),
    ],
)
def test_options_are_checked(make: Make, option: str, value: Any) -> None:
    with pytest.raises(InvalidOptionError, match=option):
        make(**{"url": "http://127.0.0.1:1", option: value} if option != "base_url" else {"url": value})


@pytest.mark.parametrize("model", ["", "a/../b", "a\nb", None, 3])
def test_the_name_of_a_model_is_checked(model: Any) -> None:
    for provider in (AnthropicProvider, GeminiProvider):
        with pytest.raises(InvalidOptionError, match="model"):
            provider(model, api_key="")
    path = GeminiProvider("tunedModels/a?b", api_key="")._path(is_stream=False)
    assert path == "/v1beta/tunedModels/a%3Fb:generateContent"


@pytest.mark.parametrize("key", ["a b", "a\nb", "ключ", 1234567])
def test_a_key_that_no_header_can_hold_is_rejected_without_showing_it(key: Any) -> None:
    with pytest.raises(InvalidOptionError, match="api_key") as caught:
        AnthropicProvider("m", api_key=key)
    assert str(key) not in str(caught.value)


def test_a_copy_of_a_provider_is_the_provider_and_pickling_raises() -> None:
    provider = claude("http://127.0.0.1:1")
    assert copy.copy(provider) is copy.deepcopy(provider) is provider
    with pytest.raises(TypeError, match="API key would be written out"):
        pickle.dumps(provider)


LONG_KEY = "sk-ant-" + "".join(chr(97 + place * 7 % 26) for place in range(90))


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("before", [130, 430, 480])
@pytest.mark.parametrize("status", [200, 401])
async def test_a_shortened_response_never_shows_part_of_the_key(
    is_streamed: bool, before: int, status: int
) -> None:
    said = "x" * before + LONG_KEY
    bodies = [Body(raw=said.encode(), status=status), Body({"error": {"message": said}}, status=status)]
    bodies.append(Body(events=[{"type": said}, {"type": "message_start", "x": said}], status=status))
    with WireServer(bodies) as server:
        async with AnthropicProvider("c", api_key=LONG_KEY, base_url=server.url) as provider:
            for _ in bodies:
                with pytest.raises(KantanAgentsError) as caught:
                    await (streamed(provider) if is_streamed else provider.generate("hi", NOTHING))
                error: BaseException | None = caught.value
                while error is not None:
                    assert LONG_KEY[:20] not in f"{error}{error!r}"
                    error = error.__cause__ or error.__context__


async def test_null_counts_do_not_replace_earlier_counts() -> None:
    events = recorded("anthropic_stream")
    events[-2]["usage"] = {"output_tokens": 5, "input_tokens": None, "cache_read_input_tokens": None}
    began = events[0]["message"]["usage"]["input_tokens"]
    with WireServer([Body(events=events)]) as server:
        async with claude(server.url) as provider:
            (*_, last) = await streamed(provider)
    assert last.metadata["usage"]["input_tokens"] >= began
    assert last.metadata["usage"]["output_tokens"] == 5


def conversation(*messages: Message) -> ProviderContext:
    question = Message("user", (ContentSegment.of_text("hi"),))
    return ProviderContext(messages=(question, *messages))


@BOTH
async def test_content_that_cannot_be_sent_raises_before_the_request(make: Make) -> None:
    orphan = Message("tool", (ContentSegment.of_text("r"),), "c9", "look")
    async with make("http://127.0.0.1:9") as provider:
        with pytest.raises(UntranslatableError, match="cut between a call and its result"):
            await provider.generate("hi", conversation(orphan))
        answer = Message("assistant", (ContentSegment.of_text("Yes?"),))
        for context in (NOTHING, conversation(answer, Message("user", (ContentSegment.of_text(""),)))):
            with pytest.raises(UntranslatableError, match="nothing to answer"):
                await provider.generate("", context)
        choice = MCPToolChoice(server_label="x", name="y")
        with pytest.raises(InvalidOptionError, match="tool_choice"):
            await provider.generate("hi", context_with(tool_choice=choice))


@BOTH
async def test_media_and_ui_of_another_model_do_not_end_the_conversation(make: Make) -> None:
    image = ContentSegment("image", data="AAAA", mime_type="image/png")
    link = ContentSegment("image", data="https://example.com/a.png")
    text = ContentSegment.of_text("a caption")
    context = conversation(
        Message(
            "assistant", (ContentSegment("ui", ui={"a": 1}), image, ContentSegment.of_call("look", {}, "c1"))
        ),
        Message("tool", (image, link, text), "c1", "look"),
    )
    with WireServer([recorded(ANSWERS[make])]) as server:
        async with make(server.url) as provider:
            await provider.generate("hi", context)
    body = server.requests[0][1]
    if make is claude:
        assert body["messages"][1]["content"][0] == {"type": "text", "text": "[image/png]"}
        assert [block["type"] for block in body["messages"][2]["content"][0]["content"]] == [
            "image",
            "image",
            "text",
        ]
    else:
        assert "inlineData" in body["contents"][1]["parts"][0]
        answer = body["contents"][2]["parts"][0]["functionResponse"]
        assert answer["response"] == {"result": ["https://example.com/a.png", "a caption"]}
        assert answer["parts"] == [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]


@pytest.mark.parametrize(
    ("model", "is_signed"),
    [("gemini-3-flash", True), ("gemini-pro-latest", True), ("gemini-2.5-pro", False)],
)
async def test_calls_of_other_models_are_signed_except_for_old_models(model: str, is_signed: bool) -> None:
    call = Message("assistant", (ContentSegment.of_call("look", {}, "c1"),))
    with WireServer([recorded("gemini_image")]) as server:
        async with GeminiProvider(model, api_key="", base_url=server.url) as provider:
            await provider.generate("hi", conversation(call))
            assert provider.supports_output_schema is is_signed
    assert ("thoughtSignature" in server.requests[0][1]["contents"][1]["parts"][0]) is is_signed


def test_size_of_counts_everything_that_is_sent() -> None:
    long = {"list": [{"n": n} for n in range(5_000)]}
    call = Message("assistant", (ContentSegment.of_call("look", long, "c1"),))
    odd = Message("user", (ContentSegment("text", text="x", extra={"gemini": long}),))
    tools = ProviderContext(tools={"look": ToolSpec("look", "", {"type": "object", "properties": long})})
    for context in (conversation(call), conversation(odd), tools):
        assert size_of(context, 100_000) >= 100_000
    assert size_of(conversation(), 100_000) < 1_000


async def _all(chunks: list[bytes]) -> list[bytes]:
    async def source() -> Any:
        for chunk in chunks:
            yield chunk

    return [event async for event in events_of(source())]


@given(
    texts=st.lists(
        st.text(min_size=1, max_size=20, alphabet=st.characters(exclude_characters="\r\n", codec="utf-8")),
        max_size=4,
    ),
    cuts=st.lists(st.integers(1, 60), max_size=8),
)
@settings(max_examples=30)
def test_the_events_do_not_depend_on_how_the_stream_is_chunked(texts: list[str], cuts: list[int]) -> None:
    whole = b"".join(b"event: x\ndata: " + text.encode() + b"\r\n\r\n" for text in texts) + b"data: cut off"
    chunks, place = [], 0
    for cut in cuts:
        chunks.append(whole[place : place + cut])
        place += cut
    chunks.append(whole[place:])
    assert asyncio.run(_all(chunks)) == [text.encode() for text in texts]


@given(
    events=st.lists(
        st.sampled_from(["anthropic_stream", "gemini_stream"]).flatmap(
            lambda name: st.sampled_from(recorded(name))
        ),
        max_size=12,
    )
)
@settings(max_examples=40)
def test_events_in_any_order_give_segments_or_a_kantan_agents_error(events: list[Any]) -> None:
    async def source() -> Any:
        for event in events:
            yield event, 0

    async def read(provider: Any) -> None:
        provider._events = lambda _: source()
        async for piece in provider._stream(HttpRequest({"messages": []}, {}, 0)):
            assert isinstance(piece, (ContentSegment, ProviderResponse, ReasoningPiece, ArgumentsPiece))

    from kantan_agents.models.protocol.http.api import UnreadableAnswerError

    for provider in (claude("http://127.0.0.1:1"), gemini("http://127.0.0.1:1")):
        try:
            asyncio.run(read(provider))
        except (KantanAgentsError, UnreadableAnswerError):
            continue
