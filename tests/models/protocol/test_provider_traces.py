"""Traces of runs with a provider have the same data as those with SDK models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import agents
import pytest

from kantan_agents import Agent, ContentSegment, ProviderResponse, TraceStore, record_traces
from tests.models.protocol.scripted import Scripted, Streaming, call, text


def fetch(key: str) -> str:
    """Fetch."""
    return f"value of {key}"


def answers() -> list[Any]:
    usage = {"usage": {"input_tokens": 7, "output_tokens": 2}, "model": "tiny-1"}
    ui = ContentSegment("ui", ui={"component": "Chart"})
    return [
        ProviderResponse([text("looking"), call("fetch", {"key": "zebra"})], usage),
        ProviderResponse([text("the answer is quokka"), ui], usage),
    ]


async def recorded(agent: Agent, path: Path, *, streamed: bool, **config: Any) -> list[Any]:
    recorder = record_traces(path)
    run_config = agents.RunConfig(**config)
    try:
        if streamed:
            async with agent.stream("Find the wombat.", run_config=run_config) as run:
                async for _ in run:
                    pass
        else:
            await agent.run_async("Find the wombat.", run_config=run_config)
    finally:
        recorder.shutdown()
    (summary,) = TraceStore(path).traces()
    return list(TraceStore(path).trace(summary.trace_id).spans)


@pytest.mark.parametrize("kind", [Scripted, Streaming])
async def test_input_output_tokens_and_model_are_recorded(kind: type[Scripted], tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite3"
    agent = Agent("finder", "Find things.", tools=[fetch], model=kind(*answers()))
    spans = await recorded(agent, path, streamed=kind is Streaming)
    model_spans = [
        span for span in spans if span.span_type == "generation" and "tiny-1" in json.dumps(span.raw or {})
    ]
    assert len(model_spans) == 2
    store = TraceStore(path)
    for word in ("wombat", "zebra", "quokka", "looking"):
        assert len(store.traces(keywords=[word])) == 1, word
    (summary,) = store.traces(tool="fetch")
    assert summary.total_tokens == 18


async def test_media_of_a_response_are_not_copied_into_the_trace(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite3"
    image = ContentSegment("image", data="aGk0" * 2_500_000, mime_type="image/png")
    provider = Scripted([text("see"), image, call("fetch", {"key": "a"})], [text("done"), image])
    await recorded(Agent("finder", "x", tools=[fetch], model=provider), path, streamed=False)
    assert provider.contexts[-1].messages[1].segments[1] == image
    assert path.stat().st_size < 1_000_000
    assert len(TraceStore(path).traces(keywords=["<10000000 characters>"])) == 1


@pytest.mark.parametrize("kind", [Scripted, Streaming])
async def test_sensitive_data_are_not_recorded_if_excluded(kind: type[Scripted], tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite3"
    agent = Agent("finder", "Find things.", tools=[fetch], model=kind(*answers()))
    spans = await recorded(agent, path, streamed=kind is Streaming, trace_include_sensitive_data=False)
    assert spans
    for word in ("wombat", "zebra", "quokka", "looking"):
        assert TraceStore(path).traces(keywords=[word]) == [], word


@pytest.mark.parametrize("kind", [Scripted, Streaming])
async def test_an_error_of_a_provider_is_recorded_on_its_span(kind: type[Scripted], tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite3"
    recorder = record_traces(path)
    agent = Agent("finder", "x", model=kind(LookupError("no such key")))
    with pytest.raises(LookupError):
        if kind is Streaming:
            async with agent.stream("Go.") as run:
                async for _ in run:
                    pass
        else:
            await agent.run_async("Go.")
    recorder.shutdown()
    (summary,) = TraceStore(path).traces(has_error=True)
    spans = TraceStore(path).trace(summary.trace_id).spans
    assert any(span.span_type == "generation" and "no such key" in str(span.error) for span in spans)
