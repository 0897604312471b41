"""Requests and answers are made fit for each other: ids of tool calls, and halves of surrogate pairs."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
from agents import (
    ModelSettings,
    OpenAIChatCompletionsModel,
    RunConfig,
    Runner,
    SQLiteSession,
    function_tool,
    handoff,
)
from hypothesis import given
from hypothesis import strategies as st
from openai import AsyncOpenAI
from pydantic import BaseModel, Field

from kantan_agents import Agent, Middleware
from kantan_agents.models.ask_model import _Exchange, _fits
from kantan_agents.models.call_ids import UniqueIds
from kantan_agents.models.whole_text import (
    WholeDeltas,
    _seen_whole,
    marked_arguments,
    sent_arguments,
    whole_answer,
    whole_parts,
    whole_request,
    whole_text,
)
from kantan_agents.testing import (
    OfflineServer,
    Reply,
    ScriptedModel,
    ScriptedToolCall,
    assistant_message,
    function_call,
)

HALF = "half \ud83d"
IDS: dict[str, Callable[[int], Any]] = {
    "constant": lambda _: "const",
    "the tool's name": lambda _: "look",
    "empty": lambda _: "",
    "null": lambda _: None,
    "unique": lambda number: f"u{number}",
}


def look(x: str) -> str:
    """Look.

    Args:
        x: Where.
    """
    return f"saw {x}"


def chat_model(server: OfflineServer) -> OpenAIChatCompletionsModel:
    """Return a model as a user makes it."""
    url = server.environment()["OPENAI_BASE_URL"]
    return OpenAIChatCompletionsModel("m", AsyncOpenAI(base_url=url, api_key="x", max_retries=0))


def completion(calls: list[tuple[Any, str]], text: str | None, *, streamed: bool) -> Reply:
    """Return a reply of a server that gives its calls these ids."""
    made = [
        {
            "index": place,
            "id": call_id,
            "type": "function",
            "function": {"name": "look", "arguments": json.dumps({"x": x})},
        }
        for place, (call_id, x) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}
    end = "tool_calls" if made else "stop"
    base = {"id": "c", "created": 1, "model": "m"}
    if not streamed:
        choice = {"index": 0, "finish_reason": end, "message": message}
        body = json.dumps({**base, "object": "chat.completion", "choices": [choice]})
        return Reply(body=body.encode())
    chunks = [
        {**base, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": message}]},
        {
            **base,
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": {}, "finish_reason": end}],
        },
    ]
    return event_stream(chunks)


def event_stream(chunks: list[dict[str, Any]]) -> Reply:
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    return Reply(body=body.encode(), headers={"content-type": "text/event-stream"})


async def final_output(agent: Agent[Any], question: str, *, streamed: bool, **options: Any) -> Any:
    if not streamed:
        return (await agent.run_async(question, **options))["result"].final_output
    async with agent.stream(question, **options) as run:
        async for _ in run:
            pass
        return run.context["result"].final_output


class Through(Middleware):
    """Does nothing, so that calls go through the middleware."""

    async def model_call(self, call: Any, call_next: Any) -> Any:
        return await call_next(call)


@pytest.mark.parametrize("middleware", [[], [Through()]], ids=["plain", "middleware"])
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("parallel", [False, True], ids=["in turn", "parallel"])
@pytest.mark.parametrize("kind", IDS)
async def test_any_ids_of_calls_run_each_call_once(
    kind: str, parallel: bool, streamed: bool, middleware: list[Any]
) -> None:
    def reply(request: Any) -> Reply:
        done = sum(message["role"] == "tool" for message in request.body["messages"])
        wanted = [(IDS[kind](0), "a"), (IDS[kind](1), "a"), (IDS[kind](2), "c")]
        calls = wanted[done:] if parallel else wanted[done : done + 1]
        return completion(calls, None if calls else "done", streamed=streamed)

    with OfflineServer(reply) as server:
        agent = Agent("a", "x", model=chat_model(server), tools=[look], middleware=middleware)
        assert await final_output(agent, "q", streamed=streamed) == "done"
        messages = server.requests[-1].body["messages"]
    tools = [message for message in messages if message["role"] == "tool"]
    assert [message["content"] for message in tools] == ["saw a", "saw a", "saw c"]
    sent = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    assert [message["tool_call_id"] for message in tools] == sent
    if kind in ("empty", "null"):
        assert len(set(sent)) == 3
        assert all(sent)
    else:
        assert sent == [IDS[kind](number) for number in range(3)]


@pytest.mark.parametrize("streamed", [False, True])
async def test_repeated_ids_go_on_in_a_stored_session(streamed: bool, tmp_path: Path) -> None:
    def reply(request: Any) -> Reply:
        calls = [("const", "a")] if request.body["messages"][-1]["role"] == "user" else []
        return completion(calls, None if calls else "done", streamed=streamed)

    with OfflineServer(reply) as server:
        for _ in range(3):
            agent = Agent("a", "x", model=chat_model(server), tools=[look])
            session = SQLiteSession("s", tmp_path / "sessions.sqlite3")
            assert await final_output(agent, "q", streamed=streamed, session=session) == "done"
            kept: list[Any] = [*await session.get_items()]
            session.close()
        sent = [m["tool_call_id"] for m in server.requests[-1].body["messages"] if m["role"] == "tool"]
    ids = [item["call_id"] for item in kept if item.get("type") == "function_call"]
    assert len(set(ids)) == 3
    assert sent == ["const"] * 3


async def test_another_server_gets_unique_ids() -> None:
    def reply(request: Any) -> Reply:
        calls = [("const", "a")] if len(request.body["messages"]) < 6 else []
        return completion(calls, None if calls else "done", streamed=False)

    with OfflineServer(reply) as first, OfflineServer(lambda _: "Hello.") as second:
        context = await Agent("a", "x", model=chat_model(first), tools=[look]).run_async("q")
        items = context["result"].to_input_list()
        await Agent("b", "x", model=chat_model(second)).run_async(items)
        sent = [m["tool_call_id"] for m in second.requests[-1].body["messages"] if m["role"] == "tool"]
    assert len(sent) == len(set(sent)) == 2


async def test_a_call_that_the_request_leaves_out_keeps_its_id_for_the_run() -> None:
    class Forget(Middleware):
        async def model_call(self, call: Any, call_next: Any) -> Any:
            call.input = call.input[:1]
            return await call_next(call)

    made: list[str] = []

    def count(x: str) -> str:
        """Count."""
        made.append(x)
        return x

    calls = [[function_call("count", {"x": "a"}, call_id="const")] for _ in range(3)]
    model = ScriptedModel([*calls, "done"])
    await Agent("a", "x", model=model, tools=[count], middleware=[Forget()]).run_async("q")
    assert made == ["a"] * 3


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_model_by_name_is_asked_so_by_the_runner_of_the_sdk(
    streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reply(request: Any) -> Reply:
        done = sum(message["role"] == "tool" for message in request.body["messages"])
        return completion(
            [("const", "a")] if done < 2 else [], "done" if done == 2 else None, streamed=streamed
        )

    with OfflineServer(reply) as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        tools = [function_tool(look), function_tool(look, name_override="look.up")]
        agent = Agent("a", HALF, model="ollama/m", tools=tools)
        if streamed:
            result: Any = Runner.run_streamed(agent, "q")
            async for _ in result.stream_events():
                pass
        else:
            result = await Runner.run(agent, "q")
        sent = server.requests[-1].body
    assert (result.final_output, len(server.requests)) == ("done", 3)
    assert sent["messages"][0]["content"] == "half \ufffd"
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["look", "look_up"]


@given(st.lists(st.sampled_from(["", "a", "a__k", "b", None, " "]), max_size=8), st.booleans())
def test_ids_are_unique_and_the_same_in_the_stream_and_in_the_answer(
    given_ids: list[Any], begins: bool
) -> None:
    items = [{"type": "function_call", "call_id": one, "name": "f"} for one in given_ids]
    ids = UniqueIds(ScriptedModel([]), {"a"})
    if begins:
        begun = [ids.streamed_item(item, is_complete=False) for item in items]
    streamed = [ids.streamed_item(item, is_complete=True) for item in items]
    complete = ids.items(items)
    assert [item["call_id"] for item in complete] == [item["call_id"] for item in streamed]
    assert len({item["call_id"] for item in complete} | {"a"}) == len(items) + 1
    if begins:
        known = [(one, other) for one, other in zip(begun, streamed, strict=True) if one["call_id"]]
        assert all(one["call_id"] == other["call_id"] for one, other in known if one["call_id"].strip())


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_half_an_emoji_in_an_answer_does_not_end_the_conversation(
    streamed: bool, tmp_path: Path
) -> None:
    with OfflineServer([completion([], text, streamed=streamed) for text in (f"{HALF}!", "fine")]) as server:
        agent = Agent("a", "x", model=chat_model(server))
        session = SQLiteSession("s", tmp_path / "sessions.sqlite3")
        answer = await final_output(agent, "one", streamed=streamed, session=session)
        assert answer == "half \ufffd!"
        assert await final_output(agent, "two", streamed=streamed, session=session) == "fine"
        session.close()
    assert "half \ufffd!" in json.dumps(server.requests[1].body, ensure_ascii=False)


async def test_a_session_that_has_half_an_emoji_already_goes_on(tmp_path: Path) -> None:
    session = SQLiteSession("s", tmp_path / "sessions.sqlite3")
    await session.add_items([{"role": "user", "content": HALF}])
    with OfflineServer(["fine"]) as server:
        agent = Agent("a", "x", model=server.bundle())
        assert await final_output(agent, "two", streamed=False, session=session) == "fine"
    session.close()


async def test_half_an_emoji_of_a_person_a_prompt_or_a_tool_is_sent_as_a_replacement() -> None:
    def ls() -> str:
        """List."""
        return os.fsdecode(b"caf\xe9.txt")

    with OfflineServer([ScriptedToolCall("ls", {}), "done"]) as server:
        agent = Agent("a", "Use {{ $ctx.x }}.", model=server.bundle(), tools=[ls])
        context = await agent.run_async(f"{HALF} \ud83d\ude00", {"x": HALF})
    assert context["result"].final_output == "done"
    sent = json.dumps(server.requests[1].body, ensure_ascii=False)
    assert "caf\ufffd.txt" in sent
    assert "half \ufffd \U0001f600" in sent
    assert "Use half \ufffd." in sent


async def test_half_an_emoji_in_tools_settings_handoffs_and_output_types_is_sent_as_a_replacement() -> None:
    class Answer(BaseModel):
        x: str = Field(description=HALF)

    def look(x: Annotated[str, Field(description=HALF, examples=[HALF])] = HALF) -> str:
        return x

    settings = ModelSettings(
        extra_body={HALF: (1, HALF)}, extra_args={"user": HALF}, extra_query={"q": HALF}, metadata={"m": HALF}
    )
    with OfflineServer(lambda _: '{"x": "fine"}') as server:
        model = server.bundle()
        other = Agent("b", "x", model=model, handoff_description=HALF)
        tools = [function_tool(look, description_override=HALF)]
        agent = Agent("a", "x", model=model, tools=tools, handoffs=[other], output_type=Answer)
        for _ in range(2):
            config = RunConfig(model_settings=settings)
            context = await agent.run_async("q", run_config=config)
    assert context["result"].final_output == Answer(x="fine")
    sent = [json.dumps(request.body, ensure_ascii=False) for request in server.requests]
    assert [text.count("half \ufffd") for text in sent] == [10, 10]


@pytest.mark.parametrize("streamed", [False, True])
async def test_half_an_emoji_in_the_input_of_a_handoff_is_received_as_a_replacement(streamed: bool) -> None:
    class Reason(BaseModel):
        x: str

    received: list[Any] = []
    call = function_call("transfer_to_b", '{"x": "\\ud83d!"}', call_id="c")
    model = ScriptedModel([[call], "done"])
    other = handoff(
        Agent("b", "x", model=model),
        input_type=Reason,
        on_handoff=lambda _, given: received.append(given),
    )
    agent = Agent("a", "x", model=model, handoffs=[other])
    assert await final_output(agent, "q", streamed=streamed) == "done"
    assert received == [Reason(x="\ufffd!")]


def test_a_part_of_requests_is_looked_through_once_and_forgotten_with_it() -> None:
    tool = function_tool(look)
    known = len(_seen_whole)
    for _ in range(2):
        assert whole_parts([tool]) == [tool]
        assert len(_seen_whole) == known + 1
    del tool
    gc.collect()
    assert len(_seen_whole) <= known


async def test_the_halves_in_two_deltas_are_one_character() -> None:
    chunks = ["a \ud83d", "\ude00 b \ud83d", "c", "\ud83d"]
    base = {"id": "c", "created": 1, "model": "m", "object": "chat.completion.chunk"}
    lines = [{**base, "choices": [{"index": 0, "delta": {"content": chunk}}]} for chunk in chunks]
    lines.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    with OfflineServer([event_stream(lines)]) as server:
        async with Agent("a", "x", model=chat_model(server)).stream("q") as run:
            deltas = [text async for text in run.text_deltas()]
            final = run.context["result"].final_output
    assert "".join(deltas) == final == "a \U0001f600 b \ufffdc\ufffd"
    assert all(whole_text(text) is text for text in deltas)


@pytest.mark.parametrize("arguments", ['{"x": "\ud83d"}', '{"x": "\\ud83d"}'], ids=["raw", "escaped"])
async def test_arguments_with_half_an_emoji_are_e10(arguments: str) -> None:
    seen: list[str] = []

    def count(x: str) -> str:
        """Count."""
        seen.append(x)
        return x

    model = ScriptedModel([[function_call("count", arguments, call_id="c")], "done"])
    context = await Agent("a", "x", model=model, tools=[count]).run_async("q")
    outputs = [item.output for item in context["result"].new_items if item.type == "tool_call_output_item"]
    assert (seen, len(outputs)) == ([], 1)
    assert "[E10]" in outputs[0]
    assert "a text in them is not valid Unicode" in outputs[0]
    assert model.calls[1].input[1]["arguments"] == '{"x": "\\ufffd"}'


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_data_without_halves_are_the_same_object(data: Any) -> None:
    assert whole_request(data) is data
    assert whole_answer(data) is data


@given(st.lists(st.text(st.sampled_from("a\ud83d\ude00é"), max_size=4)))
def test_deltas_give_the_whole_text_of_all(pieces: list[str]) -> None:
    from openai.types.responses import ResponseTextDeltaEvent

    deltas = WholeDeltas()
    made = []
    for piece in pieces:
        event = ResponseTextDeltaEvent(
            type="response.output_text.delta",
            delta=piece,
            content_index=0,
            output_index=0,
            item_id="i",
            logprobs=[],
            sequence_number=0,
        )
        ready = deltas.feed(event)
        made += [] if ready is None else [ready.delta]
    made += [event.delta for event in deltas.rest()]
    assert "".join(made) == whole_text("".join(pieces))


def test_items_of_an_answer_are_made_whole_and_halves_in_arguments_are_marked() -> None:
    message = assistant_message("a \ud83d")
    call = {"type": "function_call", "arguments": '{"\ud83d\ude00": "\udc00"}', "\ud83d": 1}
    made = whole_answer([message, call])
    assert made[0].content[0].text == "a \ufffd"
    assert made[1] == {"type": "function_call", "arguments": '{"\U0001f600": "\\u{dc00}"}', "\ufffd": 1}
    assert message.content[0].text == "a \ud83d"
    assert whole_request(made)[1]["arguments"] == '{"\U0001f600": "\\ufffd"}'


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        (r'{"x": "\ud83d\ude00"}', None),
        (r'{"x": "\\ud83d"}', None),
        (r'{"x": "\\\ud83d"}', r'{"x": "\\\u{d83d}"}'),
        (r'{"x": "\ud83da\ude00"}', r'{"x": "\u{d83d}a\u{de00}"}'),
        (r'{"x": "\uD83D\uD83D\uDE00"}', r'{"x": "\u{d83d}\uD83D\uDE00"}'),
        (r'{"x": "\\u{d83d}"}', None),
    ],
)
def test_only_a_half_alone_is_marked(text: str, marked: str | None) -> None:
    assert marked_arguments(text) == (text if marked is None else marked)
    sent = json.loads(sent_arguments(marked_arguments(text)))["x"]
    assert sent == whole_text(json.loads(text)["x"])


PART = {
    "type": st.sampled_from(
        ["message", "function_call", "custom_tool_call", "function_call_output", "reasoning"]
    ),
    "call_id": st.sampled_from([None, "a", "a__k12ab_1", 5]),
    "name": st.sampled_from([None, "look", "odd name"]),
    "arguments": st.sampled_from(['{"x": 1}', '{"x": "\\\\ud83d"}', f'{{"x": "{HALF}"}}']),
    "content": st.sampled_from(["Oslo", "\u00e9", HALF, [{"text": HALF}], [{"text": "Oslo"}]]),
}


@given(
    st.lists(st.fixed_dictionaries({}, optional=PART), max_size=4), st.sampled_from(["Be brief.", HALF, None])
)
def test_a_request_that_is_sent_as_it_is_would_not_be_changed(items: list[Any], instructions: Any) -> None:
    request = {
        "system_instructions": instructions,
        "input": items,
        "model_settings": ModelSettings(),
        "tools": [],
        "handoffs": [],
    }
    if _fits(request):
        assert _Exchange(ScriptedModel([]), (), request).request == request


def test_a_usual_request_is_sent_as_it_is() -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c1", "output": "o"}
    request = {"system_instructions": "Be brief.", "model_settings": ModelSettings(), "tools": []}
    assert _fits({**request, "input": [{"role": "user", "content": "q"}, call, result]})
    assert _fits({**request, "input": "q"})
