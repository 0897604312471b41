"""How fast recorded spans reach the database: the recorder's writer, and kantan-llm's tracer."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Generator
from pathlib import Path

from kantan_llm.tracing import SQLiteTracer

from benchmarks.measure import Measure
from benchmarks.trace_files import EndedTrace, copies
from benchmarks.trace_runs import flush
from kantan_agents.tracing.recorder import SQLiteRecorder

_NEVER = 3600.0


def collecting(path: Path, spans: int) -> SQLiteRecorder:
    """Return a recorder that takes so many spans and writes them only when it is flushed."""
    # Half a queue has the writer hurry.
    return SQLiteRecorder(path, max_queue=4 * spans, flush_interval=_NEVER)


def written(original: EndedTrace, recorder: Callable[[], SQLiteRecorder]) -> Measure:
    """Return the measure of a span that waits already, until it is in the database.

    Args:
        original: What is written, in copies.
        recorder: Returns the recorder of a batch.
    """

    async def batch(count: int) -> float:
        current = recorder()
        original.copied().record(current)
        flush(current)  # opens the file
        traces = copies(original, count)
        for trace in traces:
            trace.record(current)
        spans = sum(len(trace.spans) for trace in traces)
        del traces, trace  # nor has a service them any more, for the garbage collector to look through
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
    """Yield recorders, each with a file that is not there yet; the one before is shut down."""
    while True:
        recorder = collecting(path(), spans)
        try:
            yield recorder
        finally:
            recorder.shutdown()
