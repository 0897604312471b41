"""A store as kantan-llm's search service, in many threads, in async code, and with a recorder."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from datetime import timedelta, timezone
from typing import Any

import pytest
from blockbuster import blockbuster_ctx
from kantan_llm.tracing import SpanQuery, SQLiteTracer, TraceQuery, TraceSearchService
from kantan_llm.tracing.analysis import find_failed_judges

from kantan_agents import Agent, SQLiteRecorder, TraceStore, record_traces
from kantan_agents.testing import ScriptedModel, assistant_message
from tests.traces.store.sample_database import SampleDatabase


def fill(db: SampleDatabase, runs: int = 3) -> list[str]:
    return [db.run(f"question {number}", prompt_name="p", number=number) for number in range(runs)]


def test_results_equal_those_of_kantan_llms_search(db: SampleDatabase, store: TraceStore) -> None:
    trace_ids = fill(db)
    db.judge(trace_ids[0], 0.1)
    own = SQLiteTracer(str(db.file))
    store.default_tz = own.default_tz
    service: TraceSearchService = store
    for query in (
        TraceQuery(),
        TraceQuery(keywords=["question 1"]),
        TraceQuery(metadata={"number": 2}, limit=1),
    ):
        assert service.search_traces(query=query) == own.search_traces(query=query)
    for spans in (SpanQuery(), SpanQuery(name="judge"), SpanQuery(trace_id=trace_ids[0], keywords=["q"])):
        assert service.search_spans(query=spans) == own.search_spans(query=spans)
    (span, judge) = service.get_spans_by_trace(trace_ids[0])
    assert service.get_trace(trace_ids[1]) == own.get_trace(trace_ids[1])
    assert service.get_span(span.span_id) == own.get_span(span.span_id) == span
    assert service.get_spans_since(trace_ids[0], 1) == own.get_spans_since(trace_ids[0], 1) == [judge]
    assert service.get_trace("none") is None and service.get_span("none") is None
    assert service.capabilities() == own.capabilities()
    assert find_failed_judges(service, 0.5) == [judge]
    own.shutdown()


def test_times_of_kantan_llms_records_are_in_the_time_zone_of_the_store(
    db: SampleDatabase, store: TraceStore
) -> None:
    (trace_id,) = fill(db, 1)
    record = store.get_trace(trace_id)
    assert record.started_at.isoformat() == "2025-06-01T12:00:00"
    store.default_tz = timezone(timedelta(hours=9))
    assert store.get_trace(trace_id).started_at.isoformat() == "2025-06-01T21:00:00"


def test_concurrent_threads_can_share_a_store(db: SampleDatabase, store: TraceStore) -> None:
    trace_ids = fill(db, 10)

    def query(number: int) -> Any:
        trace_id = trace_ids[number % 10]
        return (
            [trace.trace_id for trace in store.traces(metadata={"number": number % 10})] == [trace_id],
            store.trace(trace_id).summary.input == f"question {number % 10}",
            store.get_trace(trace_id).trace_id == trace_id,
            store.prompts("p")[0].runs == 10,
            len(list(store.export(limit=2))) == 2,
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(all(answers) for answers in pool.map(query, range(80)))


def test_traces_can_be_read_while_others_are_written(db: SampleDatabase, store: TraceStore) -> None:
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(lambda: [len(store.traces()) for _ in range(50)])
        fill(db, 20)
        seen = reading.result()
    assert seen == sorted(seen)


@pytest.mark.file_only
async def test_nothing_blocks_the_event_loop(db: SampleDatabase, store: TraceStore) -> None:
    trace_ids = fill(db)
    db.judge(trace_ids[0], 0.1)
    with blockbuster_ctx():
        assert len(await store.traces_async(keywords=["question"], limit=2)) == 2
        assert (await store.trace_async("LAST")).summary.trace_id == trace_ids[2]
        assert (await store.prompts_async("p"))[0].runs == 3
        assert len(await store.failed_async(0.5, prompt="p", limit=1)) == 1
        assert (await store.prune_async(keep=2, dry_run=True)).traces == 1
        assert (await store.prune_async(keep=2)).traces == 1
        async with aclosing(store.export_async()) as records:
            assert (await anext(records))["trace_id"] == trace_ids[2]
        async with aclosing(store.follow_async(poll=0.001)) as following:
            first = asyncio.ensure_future(anext(following))
            run = await asyncio.to_thread(run_elsewhere, db)
            while not first.done():
                # Only runs after the first step are new, so another one may be needed.
                await asyncio.sleep(0.01)
                run = await asyncio.to_thread(run_elsewhere, db)
            assert (await first).input == "elsewhere"
    assert run


def run_elsewhere(db: SampleDatabase) -> str:
    from tests.traces.store.sample_database import open_sample

    with open_sample(db.path) as other:
        return other.run("elsewhere")


async def test_recorders_are_flushed_before_a_read(tmp_path: Any) -> None:
    recorder = record_traces(tmp_path / "t.db", flush_interval=60)
    agent = Agent("a", "b", model=ScriptedModel([[assistant_message("x")]] * 4))
    try:
        await agent.run_async("first")
        recorder.force_flush()
        store = TraceStore(tmp_path / "t.db")
        for number, read in enumerate([store.traces, lambda: list(store.export()), store.prompts]):
            await agent.run_async("next")
            found = read()
            assert len(found) == number + 2 or found[0].runs == number + 2
        assert isinstance(recorder, SQLiteRecorder)
    finally:
        recorder.shutdown()
