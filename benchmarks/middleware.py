"""Measures the cost of observing and wrapping runs: the pipeline, middleware, events and streams.

    python benchmarks/middleware.py [--repeats 41] [--quick]

Two sides take turns in short batches; a ratio is the median of the ratios of neighbouring batches, and
``A/A`` is a side against itself. Models answer at once, so that little but the library's own work is
measured.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import agents
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
)
from rich.console import Console

if __name__ == "__main__":
    # Not this folder, whose statistics.py would hide that of the standard library.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.measure import Measure, RunOnce, environment, timed
from benchmarks.overhead import INSTRUCTIONS, FakeModel, make_tools
from benchmarks.report import Report, microseconds
from kantan_agents import Agent, Middleware, Pipeline, set_trace_processors
from kantan_agents.agent.running import drive, new
from kantan_agents.agent.stages import call_sdk

QUESTION = "How is it in Oslo?"
LAYERS = 10
DELTAS = 1_000
NO_SUBSCRIBER = 1.01
A_DELTA = 1.05


class StreamingModel(FakeModel):
    """Streams a text of many deltas."""

    def __init__(self, deltas: int) -> None:
        super().__init__("")
        text = ResponseOutputText(type="output_text", text="sun " * deltas, annotations=[])
        message = ResponseOutputMessage(
            id="m", type="message", role="assistant", status="completed", content=[text]
        )
        final = Response(
            id="r",
            created_at=0,
            model="fake",
            object="response",
            output=[message],
            tool_choice="auto",
            tools=[],
            parallel_tool_calls=False,
        )
        delta = ResponseTextDeltaEvent(
            type="response.output_text.delta",
            item_id="m",
            output_index=0,
            content_index=0,
            delta="sun ",
            logprobs=[],
            sequence_number=1,
        )
        self._events = [delta] * deltas
        self._last = ResponseCompletedEvent(type="response.completed", response=final, sequence_number=2)

    async def stream_response(self, *_args: Any, **_kwargs: Any) -> AsyncIterator[Any]:
        """Yield the deltas, then the end."""
        for event in self._events:
            await asyncio.sleep(0)  # as bytes come from a connection
            yield event
        yield self._last


class PassingOn(Middleware):
    """Passes everything on, at all three levels."""

    def __init__(self, number: int) -> None:
        self.name = f"layer_{number}"

    async def run(self, run: Any, call_next: Any) -> None:
        """Pass on."""
        await call_next(run)

    async def model_call(self, call: Any, call_next: Any) -> Any:
        """Pass on."""
        return await call_next(call)

    async def tool_call(self, call: Any, call_next: Any) -> Any:
        """Pass on."""
        return await call_next(call)


class AroundRuns(Middleware):
    """Passes runs on."""

    def __init__(self, number: int) -> None:
        self.name = f"layer_{number}"

    async def run(self, run: Any, call_next: Any) -> None:
        """Pass on."""
        await call_next(run)


class AroundModelCalls(Middleware):
    """Passes model calls on."""

    async def model_call(self, call: Any, call_next: Any) -> Any:
        """Pass on."""
        return await call_next(call)


class AroundToolCalls(Middleware):
    """Passes tool calls on."""

    async def tool_call(self, call: Any, call_next: Any) -> Any:
        """Pass on."""
        return await call_next(call)


def one_turn(**options: Any) -> tuple[Agent, RunOnce]:
    """Return an agent that answers at once, and its run."""
    return _runs(Agent("bench", INSTRUCTIONS, model=FakeModel("It is sunny."), **options))


def tool_turn(**options: Any) -> tuple[Agent, RunOnce]:
    """Return an agent that calls a tool first, and its run."""
    model = FakeModel("It is sunny.", calls_tool=True)
    return _runs(Agent("bench", INSTRUCTIONS, model=model, tools=make_tools(1), **options))


def _runs(agent: Agent) -> tuple[Agent, RunOnce]:
    async def run() -> Any:
        return await agent.run_async(QUESTION)

    return agent, run


def plain_turn() -> RunOnce:
    """Return the run of the SDK alone."""
    agent = agents.Agent(name="bench", instructions=INSTRUCTIONS, model=FakeModel("It is sunny."))

    async def run() -> Any:
        return await agents.Runner.run(agent, QUESTION, context={})

    return run


def without_events() -> ExitStack:
    """Remove from runs everything that events need, as if there were no events."""
    patched = ExitStack()
    for place, name, instead in (
        (new, "emitter_for", lambda *_args, **_kwargs: None),
        (drive, "log_end", lambda *_args: None),
    ):
        patched.enter_context(mock.patch.object(place, name, instead))
    return patched


def timed_without_events(run: RunOnce) -> Measure:
    """Return the measure of a run without events."""
    measure = timed(run)

    async def batch(count: int) -> float:
        with without_events():
            return await measure(count)

    return batch


def timed_with(agent: Agent, run: RunOnce, handlers: int) -> Measure:
    """Return the measure of a run with the given number of observers."""
    measure = timed(run)

    async def batch(count: int) -> float:
        events: list[Any] = []
        subscriptions = [agent.subscribe(events.append) for _ in range(handlers)]
        seconds = await measure(count)
        for subscription in subscriptions:
            subscription.cancel()
        if not events:
            raise RuntimeError("no event was emitted")
        return seconds

    return batch


def streams(model: agents.Model, **options: Any) -> tuple[RunOnce, RunOnce]:
    """Return the same streamed run on the SDK and on kantan_agents, each of which reads all text."""
    plain = agents.Agent(name="bench", instructions=INSTRUCTIONS, model=model)
    ours = Agent("bench", INSTRUCTIONS, model=model, **options)

    async def run_plain() -> int:
        read = 0
        streamed = agents.Runner.run_streamed(plain, QUESTION, context={})
        async for event in streamed.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                read += len(event.data.delta)
        return read

    async def run_ours() -> int:
        async with ours.stream(QUESTION) as run:
            return sum([len(text) async for text in run.text_deltas()])

    return run_plain, run_ours


def _checked(run: Callable[[], Coroutine[Any, Any, int]], length: int) -> RunOnce:
    async def checked() -> None:
        if await run() != length:
            raise RuntimeError("not all of the text arrived")

    return checked


async def pipeline(report: Report) -> None:
    """Measure the pipeline, and middleware at each level."""
    report.begin("1. pipeline and middleware", "without", "with")
    _, bare = one_turn(pipeline=Pipeline([call_sdk]))
    _, full = one_turn()
    await report.row("call_sdk alone, against the SDK", timed(plain_turn()), timed(bare), 20)
    await report.row("all standard stages", timed(bare), timed(full), 20)
    _, tools = tool_turn()
    for name, kind, run, make in (
        ("around the run", AroundRuns, full, one_turn),
        ("around model calls", lambda _: AroundModelCalls(), full, one_turn),
        ("around tool calls", lambda _: AroundToolCalls(), tools, tool_turn),
        ("on all levels, tool turn", PassingOn, tools, tool_turn),
    ):
        _, wrapped = make(middleware=[kind(number) for number in range(LAYERS)])
        await report.row(f"{LAYERS} {name}", timed(run), timed(wrapped), 20)


async def events(report: Report) -> None:
    """Measure events without and with observers."""
    report.begin("2. events", "without", "with")
    for name, make in (("one turn", one_turn), ("tool turn", tool_turn)):
        agent, run = make()
        await report.row(
            f"{name}, no subscriber", timed_without_events(run), timed(run), 30, goal=NO_SUBSCRIBER
        )
        await report.row(f"{name}, one subscriber", timed(run), timed_with(agent, run, 1), 20)


async def streaming(report: Report) -> None:
    """Measure streamed runs against those of the SDK."""
    report.begin("3. streams, read to the end", "run_streamed", "agent.stream")
    length = len("sun " * DELTAS)
    plain, ours = streams(StreamingModel(DELTAS))
    seconds, ratio = await report.row(
        f"{DELTAS:,} deltas", timed(_checked(plain, length)), timed(_checked(ours, length)), 1, goal=A_DELTA
    )
    report.say(f"   a delta: {microseconds(seconds / DELTAS)} and {microseconds(seconds * ratio / DELTAS)}")
    _, wrapped = streams(StreamingModel(DELTAS), middleware=[AroundModelCalls()])
    await report.row(
        f"{DELTAS:,} deltas, middleware", timed(_checked(plain, length)), timed(_checked(wrapped, length)), 1
    )


async def main(repeats: int) -> list[str]:
    """Measure everything and return the goals that were missed."""
    set_trace_processors([])
    report = Report(Console(width=110), repeats)
    report.say(f"{environment('openai-agents', 'openai', 'kantan-llm')}; {repeats} repeats")
    await pipeline(report)
    await events(report)
    await streaming(report)
    return report.missed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=41, help="batches a side (default 41)")
    parser.add_argument("--quick", action="store_true", help="3 repeats, for CI")
    arguments = parser.parse_args()
    missed = asyncio.run(main(3 if arguments.quick else max(9, arguments.repeats)))
    for goal in missed:
        sys.stdout.write(f"GOAL MISSED  {goal}\n")
    sys.exit(1 if missed and not arguments.quick else 0)
