"""Runs with traces, and the measures of a run with each trace processor."""

from __future__ import annotations

import asyncio
import gc
import inspect
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
from agents import ModelResponse, generation_span
from kantan_llm.tracing import NoOpTracer, SQLiteTracer
from openai.types.responses import ResponseFunctionToolCall

from benchmarks.measure import Measure, RunOnce
from benchmarks.overhead import FakeModel, make_tools, pair
from kantan_agents import set_trace_processors
from kantan_agents.traces.recorder import SQLiteRecorder

INTERVAL: float = inspect.signature(SQLiteRecorder).parameters["flush_interval"].default
"""Seconds that a recorder collects spans before it writes them."""

SHORT = 0.6 * INTERVAL
"""Maximum seconds of a batch that ends before anything is written.

Not much less than the interval: the runs after a write find less in the processor's caches, and in a service
there is one write an interval.
"""

FLUSH_SECONDS = 60.0
TEXT = "It is sunny."
_USAGE = {
    "requests": 1,
    "input_tokens": 74,
    "output_tokens": 9,
    "total_tokens": 83,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens_details": {"reasoning_tokens": 0},
}


class TracedModel(FakeModel):
    """A model that traces its calls as the SDK's chat completions model does: input, output and usage.

    Args:
        text: The answer.
        calls_tool: Whether it calls ``tool_0`` first.
        seconds: Time until it answers.
    """

    def __init__(self, text: str, *, calls_tool: bool = False, seconds: float = 0.0) -> None:
        super().__init__(text, calls_tool=calls_tool)
        self._seconds = seconds

    async def get_response(
        self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any
    ) -> ModelResponse:
        """Answer."""
        with generation_span(model="gpt-4.1", model_config={"temperature": None, "top_p": None}) as span:
            if self._seconds:
                await asyncio.sleep(self._seconds)
            response = await super().get_response(system_instructions, input, *args, **kwargs)
            given = [{"role": "user", "content": input}] if isinstance(input, str) else input
            span.span_data.input = [{"role": "system", "content": system_instructions}, *given]
            span.span_data.output = [_message(item) for item in response.output]
            span.span_data.usage = dict(_USAGE)
        return response


def _message(item: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"content": None, "refusal": None, "role": "assistant", "tool_calls": None}
    if isinstance(item, ResponseFunctionToolCall):
        function = {"name": item.name, "arguments": item.arguments}
        message["tool_calls"] = [{"id": item.call_id, "function": function, "type": "function"}]
    else:
        message["content"] = item.content[0].text
    return message


def one_turn() -> RunOnce:
    """Return a run of one turn whose model creates no span."""
    return pair(FakeModel(TEXT))[1]


def tool_turn() -> RunOnce:
    """Return a run that calls a tool."""
    return pair(FakeModel(TEXT, calls_tool=True), make_tools(1))[1]


def traced_tool_turn() -> RunOnce:
    """Return a run that calls a tool, with all spans of a run on a real model."""
    return pair(TracedModel(TEXT, calls_tool=True), make_tools(1))[1]


def waiting_turn(seconds: float) -> RunOnce:
    """Return a run of one turn whose model takes ``seconds`` and creates a span."""
    return pair(TracedModel(TEXT, seconds=seconds))[1]


def flush(recorder: SQLiteRecorder) -> None:
    """Wait until everything is written.

    Raises:
        RuntimeError: Some spans were not written, so the figures are invalid.
    """
    written = recorder.force_flush(FLUSH_SECONDS)
    stats = recorder.stats()
    if not written or stats.dropped or stats.failed:
        raise RuntimeError(f"spans were lost, or could not be written in {FLUSH_SECONDS:g} s: {stats}")


async def seconds_of(run: RunOnce, count: int, processor: Any) -> float:
    """Return the average seconds of a run over ``count`` consecutive runs, traced by ``processor``."""
    set_trace_processors([processor])
    gc.collect()
    start = time.perf_counter()
    for _ in range(count):
        await run()
    return (time.perf_counter() - start) / count


def unrecorded(run: RunOnce) -> Measure:
    """Return the measure of a run that is traced but not recorded."""
    tracer = NoOpTracer()

    async def batch(count: int) -> float:
        return await seconds_of(run, count, tracer)

    return batch


@attrs.define
class Recorded:
    """The measure of a recorded run. Spans not yet written are written after the timed part.

    Attributes:
        ended: Number of spans that ended in the timed parts.
        written: Number of spans that were written in the timed parts.
    """

    run: RunOnce
    recorder: SQLiteRecorder
    ended: int = 0
    written: int = 0

    async def __call__(self, count: int) -> float:
        """Return the average seconds of a run over ``count`` runs."""
        flush(self.recorder)
        before = self.recorder.stats().written
        seconds = await seconds_of(self.run, count, self.recorder)
        meanwhile = self.recorder.stats().written
        flush(self.recorder)
        self.written += meanwhile - before
        self.ended += self.recorder.stats().written - before
        return seconds


def recorded_by_kantan_llm(run: RunOnce, path: Callable[[], Path]) -> Measure:
    """Return the measure of a run that kantan-llm's tracer records, in a new file for each batch."""

    async def batch(count: int) -> float:
        tracer = SQLiteTracer(str(path()))
        tracer.get_trace("")  # opens the file
        try:
            return await seconds_of(run, count, tracer)
        finally:
            tracer.shutdown()

    return batch


async def runs_in(seconds: float, run: RunOnce) -> int:
    """Return the number of runs that take about ``seconds``, at least one."""
    measure = unrecorded(run)
    await measure(1)
    return max(1, math.floor(seconds / await measure(5)))
