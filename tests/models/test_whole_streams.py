"""An answer that breaks off is an error of the connection, never half an answer or an empty one."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from agents import OpenAIChatCompletionsModel, OpenAIResponsesModel
from openai import APIConnectionError, APIError

from kantan_agents import Agent, TraceStore, record_traces
from kantan_agents.middleware import Retry
from kantan_agents.testing import OfflineServer, Reply

DONE = "data: [DONE]\n\n"


def chunk(finish_reason: str | None = None, **delta: Any) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    data = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return f"data: {json.dumps(data)}\n\n"


def call(arguments: str) -> str:
    function = {"name": "delete", "arguments": arguments}
    return chunk(tool_calls=[{"index": 0, "id": "c1", "type": "function", "function": function}])


def event(kind: str, **data: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, 'sequence_number': 1, **data})}\n\n"


def sent(body: str, content_type: str = "text/event-stream", **headers: str) -> Reply:
    return Reply(body=body.encode(), headers={"content-type": content_type, **headers})


SAID = 'She said: {"finish_reason": "stop"}'
WHOLE_ANSWER = json.dumps(
    {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}
        ],
    }
)
TEXT = event("response.created", response={}) + event(
    "response.output_text.delta",
    item_id="m",
    output_index=0,
    content_index=0,
    delta='"type":"response.completed"',
    logprobs=[],
)
BROKEN = {
    "after a part of the text": ("chat", sent(chunk(content="hel"))),
    "after a text about finish reasons": ("chat", sent(chunk(content=SAID))),
    "after a text about end marks": ("chat", sent(chunk(content="say data: [DONE] now"))),
    "after an empty finish reason": ("chat", sent(chunk("", content="hel"))),
    "in the arguments of a call": ("chat", sent(call('{"path": "/'))),
    "after the arguments of a call": ("chat", sent(call('{"path": "/"}'))),
    "before the first event": ("chat", sent("")),
    "a page of a proxy": ("chat", sent("<html>502 bad gateway</html>", "text/html")),
    "an answer that is not streamed": ("chat", sent(WHOLE_ANSWER, "application/json")),
    "without choices": ("chat", sent('data: {"choices": []}\n\n' + DONE)),
    "without a delta": ("chat", sent('data: {"choices": [{"finish_reason": "stop"}]}\n\n' + DONE)),
    "Responses, after a part of the text": ("responses", sent(TEXT)),
    "Responses, a page of a proxy": ("responses", sent("<html>502</html>", "text/html")),
}


async def text_of(agent: Agent[Any]) -> str:
    async with agent.stream("Go") as stream:
        return "".join([text async for text in stream.text_deltas()])


@pytest.mark.parametrize(("api", "reply"), BROKEN.values(), ids=BROKEN)
async def test_a_stream_that_breaks_off_is_an_error(api: Any, reply: Reply, tmp_path: Path) -> None:
    deleted: list[str] = []

    def delete(path: str) -> None:
        """Delete a file."""
        deleted.append(path)

    recorder = record_traces(tmp_path / "traces.sqlite3")
    with OfflineServer([reply] * 2) as server:
        agent = Agent("a", "x", model=server.bundle(api=api), tools=[delete])
        with pytest.raises(APIConnectionError, match="the stream of the answer"):
            await text_of(agent)
    recorder.shutdown()
    assert deleted == []
    (trace,) = TraceStore(tmp_path / "traces.sqlite3").traces()
    assert "the stream of the answer" in (trace.error or "")


@pytest.mark.parametrize(
    "broken",
    [
        sent("<html>502 bad gateway</html>", "text/html"),
        sent("", "text/html"),
        sent("", "application/json"),
        sent(WHOLE_ANSWER[:-9], "application/json; charset=utf-8"),
        sent("null", "application/json"),
        sent('{"error": "Unexpected endpoint. Returning 200 anyway"}', "application/json"),
        sent('{"choices": [], "output": null}', "application/json"),
        sent('{"choices": [{"message": null}]}', "application/json"),
    ],
)
@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_an_answer_that_is_not_streamed_and_not_json_is_an_error_and_retried(
    api: Any, broken: Reply, tmp_path: Path
) -> None:
    recorder = record_traces(tmp_path / "traces.sqlite3")
    with OfflineServer([broken] * 2 + ["Done."]) as server:
        model = server.bundle(api=api)
        with pytest.raises(APIConnectionError, match=r"the answer is (not a whole )?JSON"):
            await Agent("a", "x", model=model).run_async("Go")
        agent = Agent("a", "x", model=model, middleware=[Retry(2, initial_delay=0.0, max_delay=0.0)])
        assert (await agent.run_async("Go"))["result"].final_output == "Done."
    recorder.shutdown()
    assert len(server.requests) == 3
    assert "the answer is" in (TraceStore(tmp_path / "traces.sqlite3").traces()[-1].error or "")


@pytest.mark.parametrize("kind", [OpenAIChatCompletionsModel, OpenAIResponsesModel])
async def test_retry_asks_again_if_nothing_has_been_streamed(kind: Any) -> None:
    with OfflineServer([sent("<html>502</html>", "text/html"), "Done."]) as server:
        model = kind("gpt-6.1-terra", server.bundle().client)  # a model that the application has made
        agent = Agent("a", "x", model=model, middleware=[Retry(2, initial_delay=0.0, max_delay=0.0)])
        assert await text_of(agent) == "Done."
    assert len(server.requests) == 2


async def test_retry_does_not_ask_again_after_text_was_streamed() -> None:
    with OfflineServer([sent(chunk(content="hello")), "Done."]) as server:
        retry = Retry(2, initial_delay=0.0, max_delay=0.0)
        agent = Agent("a", "x", model=server.bundle(api="chat"), middleware=[retry])
        with pytest.raises(APIConnectionError, match="the stream of the answer"):
            await text_of(agent)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "body",
    [
        chunk(content="hello") + DONE,
        chunk(content="hello") + "data:[DONE]\n\n",
        chunk(content="hello") + chunk("length"),
        chunk(content="hello") + chunk("stop").rstrip(),
        (chunk(content="hello") + chunk("stop")).replace("\n", "\r\n"),
        ": OPENROUTER PROCESSING\n\n" + chunk(content="hello") + chunk("stop") + DONE,
    ],
)
async def test_a_finish_reason_or_an_end_mark_makes_a_stream_whole(body: str) -> None:
    packed = Reply(
        body=gzip.compress(body.encode()),
        headers={"content-type": "text/event-stream", "content-encoding": "gzip"},
    )
    with OfflineServer([sent(body), packed]) as server:
        agent = Agent("a", "x", model=server.bundle(api="chat"))
        assert [await text_of(agent), await text_of(agent)] == ["hello", "hello"]


@pytest.mark.parametrize("streamed", [False, True])
async def test_the_error_names_the_url_without_secrets_and_shows_what_came(streamed: bool) -> None:
    page = "<html>\n<title>My NAS</title> api_key=sk-abcdefghij0123456789" + " x" * 5_000
    with OfflineServer([sent(page, "text/html")]) as server:
        client = server.bundle(api="chat").client
        url = str(client.base_url)
        with_password = url.replace("//", "//ann:pass-word@", 1)
        client = client.copy(base_url=with_password, default_query={"token": "t0psecret"})
        agent = Agent("a", "x", model=OpenAIChatCompletionsModel("m", client))
        with pytest.raises(APIConnectionError) as raised:
            await (text_of(agent) if streamed else agent.run_async("Go"))
    message = str(raised.value)
    assert f" from {url}chat/completions. It is" in message
    assert "'<html> <title>My NAS</title>" in message
    assert "Check the base URL, which usually ends with /v1" in message
    assert len(message) < 700
    assert not any(secret in message for secret in ("pass-word", "t0psecret", "abcdefghij"))


async def test_an_error_that_a_server_streams_is_raised_as_such() -> None:
    body = 'data: {"error": {"message": "model crashed"}}\n\n' + DONE
    with OfflineServer([sent(body)]) as server, pytest.raises(APIError, match="model crashed"):
        await text_of(Agent("a", "x", model=server.bundle(api="chat")))


@pytest.mark.parametrize("streamed", [False, True])
async def test_the_error_for_half_an_answer_does_not_show_its_text(streamed: bool) -> None:
    half = chunk(content="hello") if streamed else WHOLE_ANSWER[:-9]
    kind = "text/event-stream" if streamed else "application/json"
    with OfflineServer([sent(half, kind)]) as server:
        agent = Agent("a", "x", model=server.bundle(api="chat"))
        with pytest.raises(APIConnectionError, match=r"from http://127\.0\.0\.1") as raised:
            await (text_of(agent) if streamed else agent.run_async("Go"))
    assert "hello" not in str(raised.value)
