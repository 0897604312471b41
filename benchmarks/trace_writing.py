"""Measures how fast the recorder's writer and kantan-llm's tracer write spans to the database."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Generator
from pathlib import Path

from kantan_llm.tracing import SQLiteTracer

from benchmarks.measure import Measure
from benchmarks.trace_files import EndedTrace, copies
from benchmarks.trace_runs import flush
from kantan_agents.traces.recorder import SQLiteRecorder

_NEVER = 3600.0


def collecting(path: Path, spans: int) -> SQLiteRecorder:
    """Return a recorder that queues ``spans`` spans and writes them only when it is flushed."""
    # The writer starts early when the queue is half full.
    return SQLiteRecorder(path, max_queue=4 * spans, flush_interval=_NEVER)


def written(original: EndedTrace, recorder: Callable[[], SQLiteRecorder]) -> Measure:
    """Return the measure of writing one queued span to the database.

    Args:
        original: The trace of which copies are written.
        recorder: Returns the recorder for a batch.
    """

    async def batch(count: int) -> float:
        current = recorder()
        original.copied().record(current)
        flush(current)  # opens the file
        traces = copies(original, count)
        for trace in traces:
            trace.record(current)
        spans = sum(len(trace.spans) for trace in traces)
        del traces, trace  # a service has released its spans too, so the garbage collector does not scan them
        if current.stats().queued != spans:
            raise RuntimeError("the writer has begun already")
        gc.collect()
        start = time.perf_counter()
        flush(current)
        return (time.perf_counter() - start) / spans

    return batch


def written_by_kantan_llm(original: EndedTrace, path: Callable[[], Path]) -> Measure:
    """Return the measure of ``on_span_end`` of kantan-llm's tracer."""

    async def batch(count: int) -> float:
        tracer = SQLiteTracer(str(path()))
        traces = copies(original, count)
        for trace in traces:
            tracer.on_trace_start(trace.trace)
        gc.collect()
        start = time.perf_counter()
        for trace in traces:
            for span in trace.spans:
                tracer.on_span_end(span)
        seconds = time.perf_counter() - start
        tracer.shutdown()
        return seconds / sum(len(trace.spans) for trace in traces)

    return batch


def fresh_recorders(path: Callable[[], Path], spans: int) -> Generator[SQLiteRecorder, None, None]:
    """Yield recorders, each with a new file, and shut down the previous one each time."""
    while True:
        recorder = collecting(path(), spans)
        try:
            yield recorder
        finally:
            recorder.shutdown()
