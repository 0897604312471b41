"""kantan-llm's unmodified tracer with sync runs, which end their spans on another thread."""

from __future__ import annotations

import asyncio
from typing import Any

from agents import set_trace_processors
from kantan_llm.tracing import SQLiteTracer
from kantan_llm.tracing.search import TraceQuery

from kantan_agents import Agent
from kantan_agents.testing import ScriptedModel, assistant_message


def new_agent(count: Any = 20) -> Any:
    return Agent("a", "b", model=ScriptedModel([[assistant_message("x")]] * count))


def test_the_tracer_that_recorded_a_sync_run_can_search_it(traces: Any) -> None:
    new_agent().run("find me")
    assert len(traces.tracer.search_traces(query=TraceQuery(keywords=["find me"]))) == 1


def test_runs_before_inside_and_after_an_event_loop_are_all_recorded(traces: Any) -> None:
    agent = new_agent()

    async def main() -> None:
        await agent.run_async("async one")
        agent.run("sync inside a loop")
        await agent.run_async("async two")

    agent.run("sync before")
    asyncio.run(main())
    agent.run("sync after")
    inputs = [span.input for span in traces.spans(span_type="generation")]
    assert sorted(inputs) == sorted(
        ["sync before", "async one", "sync inside a loop", "async two", "sync after"]
    )
    assert len(traces.traces()) == 5


def test_an_async_run_and_a_sync_run_inside_the_same_loop_are_both_recorded(traces: Any) -> None:
    agent = new_agent()

    async def main() -> None:
        await agent.run_async("one")
        agent.run("two")

    asyncio.run(main())
    assert len(traces.traces()) == 2


def test_runs_from_many_threads_are_all_recorded(traces: Any) -> None:
    agent = new_agent(40)

    async def main() -> None:
        await asyncio.gather(*(asyncio.to_thread(agent.run, f"question {n}") for n in range(40)))

    asyncio.run(main())
    assert len(traces.traces()) == 40


def test_a_tracer_opens_again_after_shutdown(traces: Any) -> None:
    agent = new_agent()
    agent.run("one")
    traces.tracer.shutdown()
    agent.run("two")
    assert len(traces.traces()) == 2


def test_other_processors_are_not_changed(tmp_path: Any) -> None:
    class Mine(SQLiteTracer):
        pass

    class Other:
        def __getattr__(self, name: Any) -> Any:
            return lambda *args: None

    mine = Mine(str(tmp_path / "t.db"))
    set_trace_processors([Other(), mine])
    new_agent().run("one")
    assert len(mine.search_traces(query=TraceQuery())) == 1
    mine.shutdown()


async def test_without_a_processor_a_run_works() -> None:
    assert (await new_agent().run_async("x"))["result"].final_output == "x"


def test_a_database_in_memory_keeps_its_content() -> None:
    tracer = SQLiteTracer(":memory:")
    set_trace_processors([tracer])
    agent = new_agent()
    asyncio.run(agent.run_async("one"))
    agent.run("two")
    agent.run("three")
    assert len(tracer.search_traces(query=TraceQuery())) == 3
    tracer.shutdown()


def test_concurrent_loops_and_threads_lose_nothing_and_log_no_error(traces: Any, caplog: Any) -> None:
    from concurrent.futures import ThreadPoolExecutor

    agent = new_agent(200)

    def async_runs(number: int) -> None:
        async def main() -> None:
            await asyncio.gather(*(agent.run_async(f"async {number} {n}") for n in range(10)))

        asyncio.run(main())

    def sync_runs(number: int) -> None:
        for n in range(10):
            agent.run(f"sync {number} {n}")

    with ThreadPoolExecutor(6) as pool:
        work = [pool.submit(function, n) for n in range(3) for function in (async_runs, sync_runs)]
        for one in work:
            one.result()
    assert len(traces.traces()) == 60
    assert len(traces.spans(span_type="generation")) == 60
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
