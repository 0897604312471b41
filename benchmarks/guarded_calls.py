"""Measures guarded tool calls in one process; a worker of ``tool_rules.py``.

It imports no other benchmark and uses only public names, because it also runs against the published
kantan-agents. It reads one JSON task per line and answers each with one line, so that two such processes can
take turns.

The guarded tool is the one that the model is shown. A run is paused in its model call, and the tool is called
from there by the SDK's own ``invoke_function_tool``: with the same run, context and rules as from the runner,
but without the cost of the rest of the run.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import json
import signal
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from typing import Any

import agents
from agents import Model, ModelResponse, Usage
from agents.tool import invoke_function_tool
from agents.tool_context import ToolContext
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

import kantan_agents

CALLS = 20
"""Tool calls in a full run."""

TURN = 5
"""Consecutive calls in a batch when the difference of two sides is measured."""

SIZES = (1, 100, 10_000)
ARGUMENTS = '{"city": "Oslo", "days": 3, "unit": "celsius"}'
BAD_ARGUMENTS = '{"city": "Oslo", "days": 30, "unit": "celsius"}'
PARAMS = {
    "city": {"type": "string", "maxLength": 40, "pattern": "^[A-Z]"},
    "days": {"type": "integer", "minimum": 1, "maximum": 14},
    "unit": {"enum": ["celsius", "fahrenheit"]},
}


class TooLongError(BaseException):
    """A measurement took too long. A BaseException, so that no handler swallows it."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise ``TooLongError`` after ``seconds``, even during the match of a regular expression."""

    def give_up(*_signal: Any) -> None:
        raise TooLongError

    signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def names(count: int) -> list[str]:
    """Return tool names, among them that of the called tool."""
    return [*(f"tool_{number}" for number in range(count - 1)), "weather"]


# Rules (None for no rules) and the arguments of the call.
CASES: dict[str, tuple[dict[str, Any] | None, str]] = {
    "no rules": (None, ARGUMENTS),
    **{f"allow {size}": ({"allow": names(size), "deny": None, "params": {}}, ARGUMENTS) for size in SIZES},
    "allow as a tuple": ({"allow": tuple(names(SIZES[-1])), "deny": None, "params": {}}, ARGUMENTS),
    "params": ({"allow": ["weather"], "deny": None, "params": {"weather": PARAMS}}, ARGUMENTS),
    "refused": ({"allow": ["weather"], "deny": None, "params": {"weather": PARAMS}}, BAD_ARGUMENTS),
}


async def weather(city: str, days: int, unit: str) -> str:
    """Tell the weather.

    Args:
        city: Where.
        days: How far ahead.
        unit: Of the temperature.
    """
    return f"sunny in {city} for {days} days, 20 {unit}"


BARE = agents.function_tool(weather)


class FakeModel(Model):
    """Answers with text."""

    async def get_response(
        self, system_instructions: Any, input: Any, model_settings: Any, tools: Any, *_args: Any, **_more: Any
    ) -> ModelResponse:
        """Answer."""
        return answer()

    def stream_response(self, *_args: Any, **_kwargs: Any) -> Any:
        """Not measured here."""
        raise RuntimeError("this benchmark does not stream")


class HeldModel(FakeModel):
    """Pauses its run in the model call, and executes tasks inside it."""

    def __init__(self) -> None:
        self._tasks: asyncio.Queue[tuple[Callable[[Any], Awaitable[Any]], asyncio.Future[Any]]]
        self._tasks = asyncio.Queue()

    async def inside(self, task: Callable[[Any], Awaitable[Any]]) -> Any:
        """Call ``task`` with the guarded tool inside the run, and return its result."""
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._tasks.put_nowait((task, done))
        return await done

    async def get_response(
        self, system_instructions: Any, input: Any, model_settings: Any, tools: Any, *_args: Any, **_more: Any
    ) -> ModelResponse:
        """Execute tasks; never answer."""
        while True:
            task, done = await self._tasks.get()
            try:
                done.set_result(await task(tools[0]))
            except (Exception, TooLongError) as error:  # noqa: BLE001 - is raised where the task was given
                done.set_exception(error)


class CallingModel(FakeModel):
    """Calls the tool many times in its first turn, then answers."""

    def __init__(self, arguments: str) -> None:
        self._calls: list[Any] = [
            ResponseFunctionToolCall(
                type="function_call", call_id=f"call_{number}", name="weather", arguments=arguments
            )
            for number in range(CALLS)
        ]

    async def get_response(
        self, system_instructions: Any, input: Any, model_settings: Any, tools: Any, *_args: Any, **_more: Any
    ) -> ModelResponse:
        """Call the tool or answer."""
        if len(input) == 1:
            return ModelResponse(output=list(self._calls), usage=Usage(), response_id=None)
        return answer()


def answer() -> ModelResponse:
    """Return a text answer of a model."""
    text = ResponseOutputText(type="output_text", text="It is sunny.", annotations=[])
    message = ResponseOutputMessage(
        id="m", type="message", role="assistant", status="completed", content=[text]
    )
    return ModelResponse(output=[message], usage=Usage(), response_id=None)


def new_agent(model: Model) -> Any:
    """Return an agent with one tool."""
    return kantan_agents.Agent(name="bench", instructions="Be brief.", model=model, tools=[BARE])


def context_with(rules: dict[str, Any] | None) -> dict[str, Any]:
    """Return a new context, as each request to a service has."""
    return {} if rules is None else {"tool_rules": dict(rules)}


class HeldRun:
    """A paused run with rules."""

    def __init__(self, rules: dict[str, Any] | None, arguments: str) -> None:
        self._model = HeldModel()
        self._arguments = arguments
        self._context = context_with(rules)
        self._run = asyncio.ensure_future(new_agent(self._model).run_async("How is it?", self._context))
        self._tool_context = ToolContext(
            context=self._context,
            usage=Usage(),
            tool_name="weather",
            tool_call_id="call_1",
            tool_arguments=arguments,
        )

    async def calls(self, kind: str, count: int) -> float:
        """Return the seconds of one call: ``"bare"``, ``"guarded"``, or the ``"guard"`` alone.

        The guard alone is the difference between ``on_invoke_tool`` of the guarded and of the bare tool.
        """

        async def measure(guarded: Any) -> float:
            gc.collect()
            if kind == "guard":
                # The difference is small, so both sides take short turns under the same conditions.
                turns = [
                    -await self._batch(self._invoker(BARE), TURN)
                    + await self._batch(self._invoker(guarded), TURN)
                    for _ in range(0, count, TURN)
                ]
                return statistics.median(turns)
            return await self._batch(self._call(BARE if kind == "bare" else guarded), count)

        return float(await self._model.inside(measure))

    async def once(self) -> float:
        """Return the seconds of a single guarded call."""
        return float(await self._model.inside(lambda guarded: self._batch(self._call(guarded), 1)))

    async def end(self) -> None:
        """End the run."""
        self._run.cancel()
        await asyncio.wait([self._run])
        with suppress(asyncio.CancelledError, TooLongError):
            self._run.result()

    def _call(self, tool: Any) -> Callable[[], Awaitable[Any]]:
        return functools.partial(
            invoke_function_tool,
            function_tool=tool,
            context=self._tool_context,
            arguments=self._arguments,
        )

    def _invoker(self, tool: Any) -> Callable[[], Awaitable[Any]]:
        return functools.partial(tool.on_invoke_tool, self._tool_context, self._arguments)

    async def _batch(self, call: Callable[[], Awaitable[Any]], count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            with suppress(ValueError):  # which the published release raises for a denied call
                await call()
        return (time.perf_counter() - start) / count


@functools.cache
def calling_agent(case: str) -> Any:
    """Return the agent of a case; like a service, each case creates it once."""
    return new_agent(CallingModel(CASES[case][1]))


async def full_runs(case: str, count: int) -> float:
    """Return the seconds of a run with its tool calls, for each of the calls."""
    agent = calling_agent(case)
    gc.collect()
    start = time.perf_counter()
    for _ in range(count):
        await agent.run_async("How is it?", context_with(CASES[case][0]))
    return (time.perf_counter() - start) / count / CALLS


async def hostile(pattern: str, value: str, limit: float) -> float | None:
    """Return the seconds of one call under a hostile pattern, or None if they are more than ``limit``."""
    rules = {"allow": None, "deny": None, "params": {"weather": {"city": {"pattern": pattern}}}}
    run = HeldRun(rules, json.dumps({"city": value}))
    try:
        with at_most(limit):
            return await run.once()
    except TooLongError:
        return None
    finally:
        await run.end()


async def serve() -> None:
    """Print the measured versions, then execute tasks until the input ends."""
    kantan_agents.set_trace_processors([])
    held = {name: HeldRun(*case) for name, case in CASES.items()}
    for run in held.values():
        await run.calls("guarded", 3)
    gc.collect()
    gc.freeze()  # so that collecting between the batches takes no time
    packages = ("kantan-agents", "openai-agents", "openai", "pydantic")
    reply: Any = {name: version(name) for name in packages} | {"path": kantan_agents.__file__}
    while True:
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()
        line = sys.stdin.readline()  # may block the loop, which has nothing else to do
        if not line:
            break
        task = json.loads(line)
        kind = task["kind"]
        if kind == "hostile":
            reply = await hostile(task["pattern"], task["value"], task["limit"])
        elif kind == "run":
            reply = await full_runs(task["case"], task["count"])
        else:
            reply = await held[task["case"]].calls(kind, task["count"])
    for run in held.values():
        await run.end()


if __name__ == "__main__":
    asyncio.run(serve())
