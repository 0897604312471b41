"""One side of a comparison: guarded tool calls, in whatever environment this file is run with.

It stands alone and uses public names only, because it also runs against the published kantan-agents. It
reads one JSON task a line and answers each with one line, so that two such processes can take turns.

The guarded tool is the one the model is shown. A run is held open at the moment its model is asked, and
the tool is called from there, by the SDK's own ``invoke_function_tool``: with the run, the context and
the rules that the runner would call it with, and without the rest of a run in the figure.
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
"""Calls in a row where the difference of two sides is measured."""

SIZES = (1, 100, 10_000)
ARGUMENTS = '{"city": "Oslo", "days": 3, "unit": "celsius"}'
BAD_ARGUMENTS = '{"city": "Oslo", "days": 30, "unit": "celsius"}'
PARAMS = {
    "city": {"type": "string", "maxLength": 40, "pattern": "^[A-Z]"},
    "days": {"type": "integer", "minimum": 1, "maximum": 14},
    "unit": {"enum": ["celsius", "fahrenheit"]},
}


class TooLongError(BaseException):
    """Nothing may catch it on its way."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise ``TooLongError`` after so many seconds, within a regular expression too."""

    def give_up(*_signal: Any) -> None:
        raise TooLongError

    signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def names(count: int) -> list[str]:
    """Return names of tools, the one that is called among them."""
    return [*(f"tool_{number}" for number in range(count - 1)), "weather"]


# Rules and the arguments of the call; no rules at all where they are None.
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
    """Answers with a text."""

    async def get_response(
        self, system_instructions: Any, input: Any, model_settings: Any, tools: Any, *_args: Any, **_more: Any
    ) -> ModelResponse:
        """Answer."""
        return answer()

    def stream_response(self, *_args: Any, **_kwargs: Any) -> Any:
        """Not measured here."""
        raise RuntimeError("this benchmark does not stream")


class HeldModel(FakeModel):
    """Keeps its run open and does what it is given to do inside of it."""

    def __init__(self) -> None:
        self._tasks: asyncio.Queue[tuple[Callable[[Any], Awaitable[Any]], asyncio.Future[Any]]]
        self._tasks = asyncio.Queue()

    async def inside(self, task: Callable[[Any], Awaitable[Any]]) -> Any:
        """Return what ``task`` returns, called with the guarded tool inside the run."""
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._tasks.put_nowait((task, done))
        return await done

    async def get_response(
        self, system_instructions: Any, input: Any, model_settings: Any, tools: Any, *_args: Any, **_more: Any
    ) -> ModelResponse:
        """Work off the tasks; never answer."""
        while True:
            task, done = await self._tasks.get()
            try:
                done.set_result(await task(tools[0]))
            except (Exception, TooLongError) as error:  # noqa: BLE001 - goes to who gave the task
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
    """Return a text of a model."""
    text = ResponseOutputText(type="output_text", text="It is sunny.", annotations=[])
    message = ResponseOutputMessage(
        id="m", type="message", role="assistant", status="completed", content=[text]
    )
    return ModelResponse(output=[message], usage=Usage(), response_id=None)


def new_agent(model: Model) -> Any:
    """Return an agent with the one tool."""
    return kantan_agents.Agent(name="bench", instructions="Be brief.", model=model, tools=[BARE])


def context_with(rules: dict[str, Any] | None) -> dict[str, Any]:
    """Return a context of its own, as each request to a service has."""
    return {} if rules is None else {"tool_rules": dict(rules)}


class HeldRun:
    """A run that is held open under rules."""

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
        """Return the seconds of one call: ``"bare"``, ``"guarded"``, or of the ``"guard"`` alone.

        Alone is what the guarded tool's ``on_invoke_tool`` takes longer than that of the bare tool.
        """

        async def measure(guarded: Any) -> float:
            gc.collect()
            if kind == "guard":
                # A small difference: taken in short turns, so that both sides find the same machine.
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
            with suppress(ValueError):  # how the published release refuses a call
                await call()
        return (time.perf_counter() - start) / count


@functools.cache
def calling_agent(case: str) -> Any:
    """Return the agent of a case; services make theirs once."""
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
    """Say what is measured here, then work off tasks until the input ends."""
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
        line = sys.stdin.readline()  # blocks the loop: there is nothing else to do
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
