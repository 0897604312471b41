"""Odd replies of chat completions servers give the same run as the usual ones, streamed or not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from agents import GenerationSpanData, TracingProcessor, set_trace_processors
from kantan_llm import AsyncClientBundle

from kantan_agents import Agent, TraceStore, finish_reason, record_traces
from kantan_agents.core.answers import CUT_SPAN
from kantan_agents.testing import OfflineServer, Reply

OSLO, ROME = '{"city": "Oslo"}', '{"city": "Rome"}'
TEXT_CALL = f'<tool_call>\n{{"name": "weather", "arguments": {OSLO}}}\n</tool_call>'
NOTHING = object()


def call(arguments: Any = OSLO, *, name: Any = "weather", call_id: Any = "c1", **more: Any) -> dict[str, Any]:
    made = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}
    return {key: value for key, value in made.items() if value is not NOTHING}


@attrs.frozen
class Row:
    """What a server replies, and what the run has of it.

    Attributes:
        message: The message of the reply.
        usage: The usage of the reply.
        ran: The cities of the calls that ran.
        output: The final output; that of a run with calls is the answer after them.
        thought: The reasoning.
        tokens: The total tokens of the reply.
        is_odd: Whether it has to be changed.
        is_odd_streamed: The same if it is streamed.
        mark: A part of what was received.
    """

    message: dict[str, Any]
    usage: Any = attrs.field(factory=lambda: {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8})
    ran: tuple[str, ...] = ()
    output: str = "fine"
    thought: str = ""
    tokens: int = 8
    is_odd: bool = True
    is_odd_streamed: bool = attrs.field(default=attrs.Factory(lambda row: row.is_odd, takes_self=True))
    mark: str = ""


def calls(*made: dict[str, Any], ran: tuple[str, ...] = ("Oslo",), **more: Any) -> Row:
    return Row({"content": None, "tool_calls": list(made)}, ran=ran, output="done", **more)


def said(content: Any, **more: Any) -> Row:
    return Row({"content": content}, **more)


ROWS = {
    "usual text": said("fine", is_odd=False),
    "usual call": calls(call(), is_odd=False),
    "usual calls": calls(call(), call(ROME, call_id="c2"), ran=("Oslo", "Rome"), is_odd=False),
    "text that begins with a space": said(" fine", output=" fine", is_odd=False),
    "text that begins with a tag": said("<b>fine</b>", output="<b>fine</b>", is_odd=False),
    "text that begins with a list": said("[1] fine", output="[1] fine", is_odd=False),
    "arguments as an object": calls(call({"city": "Oslo"}), mark='"arguments": {"city"'),
    "no arguments": calls(call(None, name="list_cities"), ran=("all",), is_odd_streamed=False),
    "arguments missing": calls(call(function={"name": "list_cities"}), ran=("all",), is_odd_streamed=False),
    "an empty id": calls(call(call_id=""), is_odd_streamed=False),
    "no id": calls(call(call_id=None), is_odd_streamed=False, mark='"id": null'),
    "the id is missing": calls(call(call_id=NOTHING), is_odd_streamed=False),
    "an id that is a number": calls(call(call_id=7)),
    "one id for two calls": calls(call(), call(ROME), ran=("Oslo", "Rome"), is_odd=False),
    "no id for two calls": calls(
        call(call_id=""), call(ROME, call_id=""), ran=("Oslo", "Rome"), is_odd_streamed=False
    ),
    "no type": calls(call(type=NOTHING), is_odd_streamed=False),
    "another type": calls(call(type="tool_call"), is_odd_streamed=False, mark='"type": "tool_call"'),
    "no function": calls(
        {"id": "c1", "name": "weather", "arguments": OSLO}, mark='"name": "weather", "arguments"'
    ),
    "content as parts": said(
        [{"type": "text", "text": "fi"}, {"type": "text", "text": "ne"}], mark='"type": "text", "text": "ne"'
    ),
    "content as texts": said(["fi", "ne"]),
    "content as one part": said({"type": "text", "text": "fine"}),
    "content as an object": said({"city": "Oslo"}, output=OSLO, mark='"content": {"city"'),
    "content with a part of another type": said([{"type": "image_url"}, {"type": "text", "text": "fine"}]),
    "content with thinking": said(
        [
            {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
            {"type": "text", "text": "fine"},
        ],
        thought="Hm.",
        mark='"thinking"',
    ),
    "no usage": said("fine", usage=None, tokens=0, is_odd=False),
    "usage of nulls": said(
        "fine",
        usage={"prompt_tokens": None, "completion_tokens": None, "total_tokens": None},
        tokens=0,
        mark='"total_tokens": null',
    ),
    "a part of the usage": said("fine", usage={"prompt_tokens": 5}, tokens=5),
    "usage as a text": said("fine", usage="none", tokens=0, mark='"usage": "none"'),
    "usage with odd details": said(
        "fine", usage={"prompt_tokens": 5, "completion_tokens": 3, "prompt_tokens_details": []}
    ),
    "reasoning as text": said(
        "<think>\nHm.\n</think>\n\nfine", thought="\nHm.\n", mark="<think>\\nHm.\\n</think>\\n\\nfine"
    ),
    "reasoning in brackets": said("[THINK]Hm.[/THINK]fine", thought="Hm."),
    "reasoning that is empty": said("<think></think>\n\nfine", mark="<think></think>"),
    "reasoning that is not closed": said("<think>Hm.", output="", thought="Hm."),
    "reasoning before a call": Row(
        {"content": "<think>Hm.</think>", "tool_calls": [call()]}, ran=("Oslo",), output="done", thought="Hm."
    ),
    "reasoning later in the text": said("fine <think>", output="fine <think>", is_odd=False),
    "a call as text": said(TEXT_CALL, ran=("Oslo",), output="done", mark="<tool_call>\\n{"),
    "calls as text": said(
        TEXT_CALL + TEXT_CALL.replace("Oslo", "Rome").replace("arguments", "parameters"),
        ran=("Oslo", "Rome"),
        output="done",
    ),
    "a call as text after reasoning": said(
        f"<think>Hm.</think>\n{TEXT_CALL}", ran=("Oslo",), output="done", thought="Hm."
    ),
}


def reply_of(row: Row, *, streamed: bool) -> Reply:
    end = "tool_calls" if row.message.get("tool_calls") else "stop"
    base = {"id": "c", "created": 1, "model": "m"}
    if not streamed:
        choice = {"index": 0, "finish_reason": end, "message": {"role": "assistant", **row.message}}
        body = {**base, "object": "chat.completion", "choices": [choice], "usage": row.usage}
        return Reply(body=json.dumps(body).encode())
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    content = row.message["content"]
    if isinstance(content, str):
        deltas += [{"content": content[place : place + 3]} for place in range(0, len(content), 3)]
    elif isinstance(content, list):
        deltas += [{"content": [part]} for part in content]
    elif content is not None:
        deltas.append({"content": content})
    for place, one in enumerate(row.message.get("tool_calls") or ()):
        deltas.append({"tool_calls": [None if one is None else {"index": place, **one}]})
    return streamed_reply([*deltas, {}], end, row.usage)


def streamed_reply(deltas: list[dict[str, Any]], end: str = "stop", usage: Any = None) -> Reply:
    base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunks = [
        {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None if delta else end}]}
        for delta in deltas
    ]
    if usage is not None:
        chunks.append({**base, "choices": [], "usage": usage})
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    return Reply(body=body.encode(), headers={"content-type": "text/event-stream"})


@attrs.define
class Cities:
    """Tools that note with what they were called."""

    ran: list[str] = attrs.field(factory=list)

    def tools(self) -> list[Any]:
        def weather(city: str) -> str:
            """Return the weather in a city."""
            self.ran.append(city)
            return "sunny"

        def list_cities() -> str:
            """Return all cities."""
            self.ran.append("all")
            return "Oslo"

        return [weather, list_cities]


class Outputs(TracingProcessor):
    """Keeps what the spans of model calls have as their output."""

    def __init__(self) -> None:
        self.outputs: list[Any] = []

    def on_span_end(self, span: Any) -> None:
        if isinstance(span.span_data, GenerationSpanData) and span.span_data.model is not None:
            self.outputs += [json.loads(json.dumps(output)) for output in span.span_data.output or ()]

    def on_trace_start(self, trace: Any) -> None: ...
    def on_trace_end(self, trace: Any) -> None: ...
    def on_span_start(self, span: Any) -> None: ...
    def shutdown(self) -> None: ...
    def force_flush(self) -> None: ...


@pytest.fixture(scope="module")
def server() -> Iterator[OfflineServer]:
    """Return a server with a model for each row, which answers "done" after the result of a tool."""

    def reply(request: Any) -> Any:
        body = request.body
        is_answered = any(message["role"] == "tool" for message in body["messages"])
        return "done" if is_answered else reply_of(ROWS[body["model"]], streamed=bool(body.get("stream")))

    with OfflineServer(reply) as server:
        yield server


def model_at(server: OfflineServer, name: str = "m") -> AsyncClientBundle:
    """Return a model of a local server."""
    client = server.bundle(api="chat").client
    return AsyncClientBundle(client=client, model=name, provider="lmstudio", base_url=str(client.base_url))


async def result_of(agent: Agent[Any], question: Any, *, streamed: bool) -> Any:
    if not streamed:
        return (await agent.run_async(question))["result"]
    async with agent.stream(question) as run:
        async for _ in run:
            pass
        return run.context["result"]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", ROWS)
async def test_an_odd_reply_is_read_as_the_usual_one(
    name: str, streamed: bool, server: OfflineServer
) -> None:
    row, cities, outputs = ROWS[name], Cities(), Outputs()
    set_trace_processors([outputs])
    agent = Agent("a", "x", model=model_at(server, name), tools=cities.tools())
    result = await result_of(agent, "q", streamed=streamed)
    assert (result.final_output or "", tuple(sorted(cities.ran))) == (row.output, row.ran)
    thoughts = [item.raw_item.summary[0].text for item in result.new_items if item.type == "reasoning_item"]
    assert "".join(thoughts) == row.thought
    assert result.raw_responses[0].usage.total_tokens == row.tokens
    sent = [
        call for message in server.requests[-1].body["messages"] for call in message.get("tool_calls") or ()
    ]
    assert len({call["id"] for call in sent} - {""}) == len({call["id"] for call in sent})
    is_odd = row.is_odd_streamed if streamed else row.is_odd
    assert ("received" in outputs.outputs[0]) is is_odd
    if is_odd:
        assert row.mark in json.dumps(outputs.outputs[0]["received"])


def test_what_was_received_is_in_the_database(server: OfflineServer, tmp_path: Path) -> None:
    recorder = record_traces(tmp_path / "traces.sqlite3")
    agent = Agent("a", "x", model=model_at(server, "a call as text"), tools=Cities().tools())
    agent.run("q")
    recorder.shutdown()
    store = TraceStore(tmp_path / "traces.sqlite3")
    (trace,) = store.traces()
    spans = store.trace(trace.trace_id).spans
    output = next(span.raw["span_data"]["output"][0] for span in spans if "received" in str(span.raw))
    assert output["received"]["choices"][0]["message"]["content"] == TEXT_CALL


def part(index: Any = 0, **given: Any) -> dict[str, Any]:
    return {key: value for key, value in {"index": index, **given}.items() if value is not NOTHING}


def begun(call_id: Any, arguments: str, index: Any = 0) -> dict[str, Any]:
    return part(index, id=call_id, function={"name": "weather", "arguments": arguments})


PARTS: dict[str, list[dict[str, Any]]] = {
    "usual": [begun("a", ""), part(function={"arguments": OSLO}), begun("b", ROME, 1)],
    "no index": [begun("a", OSLO, NOTHING), begun("b", ROME, NOTHING)],
    "no index in parts": [
        begun("a", '{"city":', NOTHING),
        part(NOTHING, function={"arguments": '"Oslo"}'}),
        begun("b", ROME, NOTHING),
    ],
    "one index": [begun("a", OSLO), begun("b", ROME)],
    "one index without ids": [begun("", OSLO), begun("", ROME)],
    "one index for parts": [
        begun("a", '{"city":'),
        part(function={"arguments": '"Oslo"}'}),
        begun("b", ROME),
    ],
    "the name in every part": [begun("a", '{"city":'), begun("a", '"Oslo"}'), begun("b", ROME, 1)],
    "the name in every part without ids": [begun("", '{"city":'), begun("", '"Oslo"}'), begun("", ROME, 1)],
    "indexes from behind": [begun("a", OSLO, 1), begun("b", ROME, 0)],
    "an index again": [
        begun("a", OSLO, 0),
        begun("b", '{"city":', 0),
        part(0, function={"arguments": '"Rome"}'}),
    ],
}


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
async def test_the_parts_of_streamed_calls_are_separated(parts: list[dict[str, Any]]) -> None:
    cities = Cities()
    deltas = [{"tool_calls": [one]} for one in parts]
    with OfflineServer([streamed_reply([*deltas, {}], "tool_calls"), "done"]) as other:
        agent = Agent("a", "x", model=model_at(other), tools=cities.tools())
        assert (await result_of(agent, "q", streamed=True)).final_output == "done"
    assert sorted(cities.ran) == ["Oslo", "Rome"]


@pytest.mark.parametrize("message", [{"content": "fine"}, {"content": None, "tool_calls": [call()]}])
async def test_a_message_in_place_of_deltas_is_read(message: dict[str, Any]) -> None:
    chunk = {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    body = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n"
    reply = Reply(body=body.encode(), headers={"content-type": "text/event-stream"})
    cities = Cities()
    with OfflineServer([reply, "fine"]) as other:
        agent = Agent("a", "x", model=model_at(other), tools=cities.tools())
        assert (await result_of(agent, "q", streamed=True)).final_output == "fine"
    assert len(cities.ran) == len(message.get("tool_calls", ()))


CUT = {
    "parts": {"content": [{"type": "text", "text": "fi"}]},
    "reasoning": {"content": "<think>Hm."},
    "the arguments of a call": {"content": None, "tool_calls": [call('{"city": "Os', call_id=7)]},
    "a call as text": {"content": "<think></think>" + TEXT_CALL[:30]},
}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", CUT)
async def test_an_odd_reply_that_was_cut_off_says_so_and_is_recorded_as_received(
    name: str, streamed: bool
) -> None:
    outputs, cities = Outputs(), Cities()
    set_trace_processors([outputs])
    reply = reply_of(Row(CUT[name]), streamed=streamed)
    cut = Reply(body=re.sub(rb'"(stop|tool_calls)"(?!:)', b'"length"', reply.body), headers=reply.headers)
    with OfflineServer([cut, "done"]) as other:
        agent = Agent("a", "x", model=model_at(other), tools=cities.tools())
        result = await result_of(agent, "q", streamed=streamed)
    assert finish_reason(result.raw_responses[0]) == "length"
    assert result.raw_responses[0].usage.total_tokens == 8
    assert cities.ran == []
    received = outputs.outputs[0]["received"]
    end = received[-2] if streamed else received
    assert end["choices"][0]["finish_reason"] == "length"
    assert "finish_reason" not in end["choices"][0].get("message", {})


async def test_a_reason_that_a_server_repeats_is_one_cut_answer(caplog: pytest.LogCaptureFixture) -> None:
    base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunks = [
        {**base, "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "length"}]}
        for text in ("fi", "")
    ]
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    reply = Reply(body=body.encode(), headers={"content-type": "text/event-stream"})
    with OfflineServer([reply]) as other:
        result = await result_of(Agent("a", "x", model=model_at(other)), "q", streamed=True)
    assert (result.final_output, finish_reason(result)) == ("fi", "length")
    assert sum(CUT_SPAN in record.getMessage() for record in caplog.records) == 1


SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
PIECES: dict[str, list[dict[str, Any]]] = {
    "arguments": [
        {"tool_calls": [begun("a", '{"city": "', NOTHING)]},
        *({"tool_calls": [part(NOTHING, function={"arguments": one})]} for one in [*SECRET, '"}']),
    ],
    "reasoning": [
        {"role": "assistant", "content": []},
        *({"role": "assistant", "reasoning_content": letter} for letter in SECRET),
        {"content": [{"type": "text", "text": "fine"}]},
    ],
    "text": [{"content": letter} for letter in f"<think>{SECRET}</think>fine"],
}


@pytest.mark.parametrize("deltas", PIECES.values(), ids=PIECES)
async def test_a_secret_in_the_chunks_of_an_odd_reply_is_masked(
    deltas: list[dict[str, Any]], tmp_path: Path
) -> None:
    recorder = record_traces(tmp_path / "traces.sqlite3")
    usage = {"prompt_tokens": None}
    with OfflineServer([streamed_reply([*deltas, {}], usage=usage), "done"]) as other:
        agent = Agent("a", "x", model=model_at(other), tools=Cities().tools())
        await result_of(agent, "q", streamed=True)
    recorder.shutdown()
    store = TraceStore(tmp_path / "traces.sqlite3")
    (trace,) = store.traces()
    spans = store.trace(trace.trace_id).spans
    (output,) = [span.raw["span_data"]["output"][0] for span in spans if "received" in str(span.raw)]
    assert "abcdefghijklmnop" not in str(output)
    assert all(str(output["received"]).count(f"'{letter}'") == 0 for letter in "jqz")


@pytest.mark.parametrize("choices", [None, [], [None], [{}], "none", {"index": 0}], ids=str)
async def test_a_chunk_without_a_choice_is_passed_over(choices: Any) -> None:
    reply = streamed_reply([{"content": "fi"}, {"content": "ne"}, {}])
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices}
    body = f"data: {json.dumps(chunk)}\n\n".encode() + reply.body
    with OfflineServer([Reply(body=body, headers=reply.headers)]) as other:
        result = await result_of(Agent("a", "x", model=model_at(other)), "q", streamed=True)
    assert result.final_output == "fine"
