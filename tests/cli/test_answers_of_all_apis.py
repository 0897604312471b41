"""What each reader of spans shows of an answer: of each API, run and streamed, by us and by the SDK alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import agents
import pytest
from agents import OpenAIChatCompletionsModel, OpenAIResponsesModel

from kantan_agents import Agent, ProviderModel, TraceStore
from kantan_agents.page.data.read_run import read_run
from kantan_agents.traces.telemetry.content import output_messages
from tests.answers_of_apis import APIS, ARGUMENTS, Answer, look, model_of
from tests.cli.recorded_runs import Recorded, recording

ANSWERS = (Answer("Let me look.", calls=True), Answer('It is "sunny".'))
CALL = f"look({json.dumps(ARGUMENTS)})"
HOW = ("run", "streamed", "run by the SDK", "streamed by the SDK")
SHAPES = [f"{api} {how}" for api in APIS for how in HOW]


def plain_model(api: str, model: Any) -> Any:
    """Return a model for the SDK's own runner, without a class of this library if it is OpenAI's."""
    kinds: dict[str, Callable[..., Any]] = {
        "responses": OpenAIResponsesModel,
        "chat": OpenAIChatCompletionsModel,
    }
    return kinds[api](model.model, model.client) if api in kinds else ProviderModel(model)


async def run(shape: str) -> str:
    """Run an agent whose first answer has a text and a call, and return its trace id."""
    api, how = shape.split(" ", 1)
    is_streamed = "streamed" in how
    with model_of(api, *ANSWERS, is_streamed=is_streamed) as model, agents.trace(shape) as trace:
        if "SDK" in how:
            tools: list[Any] = [agents.function_tool(look)]
            plain: Any = agents.Agent("a", instructions="Help.", model=plain_model(api, model), tools=tools)
            if is_streamed:
                async for _ in agents.Runner.run_streamed(plain, "Weather?").stream_events():
                    pass
            else:
                await agents.Runner.run(plain, "Weather?")
            return trace.trace_id
        agent = Agent("a", "Help.", model=model, tools=[look])
        if is_streamed:
            async with agent.stream("Weather?") as stream:
                async for _ in stream:
                    pass
        else:
            await agent.run_async("Weather?")
    return trace.trace_id


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    import asyncio

    async def all_of_them() -> dict[str, str]:
        return {shape: await run(shape) for shape in SHAPES}

    path = tmp_path_factory.mktemp("apis") / "traces.sqlite3"
    with recording(path):
        return Recorded(path, asyncio.run(all_of_them()))


def model_spans(store: TraceStore, trace_id: str) -> list[Any]:
    spans = store.trace(trace_id).spans
    found = [span for span in spans if span.span_type in ("response", "generation") and span.raw]
    return [span for span in found if (span.raw or {})["span_data"].get("model")]


def show(recorded: Recorded, trace_id: str, kantan_agents: Any) -> None:
    for options in ([], ["--full"]):
        text = kantan_agents("traces", "show", trace_id, "--db", str(recorded.path), *options).stdout
        shown = " ".join(text.replace("│", " ").split())
        assert f"calls {CALL} out Let me look." in shown
        assert 'out It is "sunny".' in shown
        assert "None" not in shown
        tree = shown.partition("├─")[2].replace(json.dumps(ARGUMENTS), "").replace('"sunny"', "")
        assert options or '"' not in tree


def summary(recorded: Recorded, trace_id: str, kantan_agents: Any) -> None:
    listed = json.loads(kantan_agents("traces", "list", "--json", "--db", str(recorded.path)).stdout)
    (found,) = (one for one in listed if one["trace_id"] == trace_id)
    exported = {one["trace_id"]: one for one in TraceStore(recorded.path).export()}
    assert found["output"] == exported[trace_id]["output"] == 'It is "sunny".'
    assert found["cut_answers"] == 0


def page(recorded: Recorded, trace_id: str, _kantan_agents: Any) -> None:
    data = read_run(TraceStore(recorded.path), trace_id)
    lines = [line for line in data["lines"] if line["kind"] == "model"]
    messages = data["contents"]["messages"]
    answers = []
    for line in lines:
        recorded_at = line["call"]
        numbers = [] if recorded_at is None else data["calls"][recorded_at]["output"]
        answers.append(line["answer"] or [messages[number] for number in numbers])
    first, second = answers
    assert (first[0]["role"], first[0]["text"]["text"]) == ("assistant", "Let me look.")
    assert (first[1]["role"], first[1]["name"]) == ("call", "look")
    assert [one["text"]["text"] for one in second] == ['It is "sunny".']


def search(recorded: Recorded, trace_id: str, kantan_agents: Any) -> None:
    outcome = kantan_agents("traces", "search", "let me look", "--json", "--db", str(recorded.path))
    (found,) = (one for one in json.loads(outcome.stdout) if one["trace_id"] == trace_id)
    assert found["snippet"] == "Let me look."


def search_by_tool(recorded: Recorded, trace_id: str, _kantan_agents: Any) -> None:
    import sqlite3
    from contextlib import closing

    # Not by the tool's own span, which a call that was never made does not have.
    with closing(sqlite3.connect(recorded.path)) as connection:
        connection.execute("DELETE FROM spans WHERE span_type = 'function'")
        connection.commit()
    found = TraceStore(recorded.path).traces(tool="look", limit=None)
    assert trace_id in [one.trace_id for one in found]


def telemetry(recorded: Recorded, trace_id: str, _kantan_agents: Any) -> None:
    first, second = (
        output_messages(span.raw["span_data"]["output"])
        for span in model_spans(TraceStore(recorded.path), trace_id)
    )
    (message,) = first
    said, called = message["parts"]
    assert said == {"type": "text", "content": "Let me look."}
    assert (called["type"], called["name"], called["arguments"]) == ("tool_call", "look", ARGUMENTS)
    assert message["finish_reason"] == "tool_call"
    assert second == [
        {
            "role": "assistant",
            "parts": [{"type": "text", "content": 'It is "sunny".'}],
            "finish_reason": "stop",
        }
    ]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("reader", [show, summary, page, search, telemetry, search_by_tool])
def test_every_reader_shows_the_answers_of_every_api(
    reader: Callable[..., None], shape: str, recorded: Recorded, kantan_agents: Any
) -> None:
    reader(recorded, recorded.ids[shape], kantan_agents)
