"""Measures the overhead of kantan_agents over a plain ``Runner.run``, in one process.

    python benchmarks/overhead.py [--repeats 61] [--quick]

Both sides do the same work on the same fake model. They take turns (A B A B ...) in batches; a figure is the
median over the repeats, and a ratio the median of the ratios of neighbouring batches. The column ``A/A``
measures the plain SDK against itself in the same way, which shows how much of a ratio is noise. Garbage is
collected between the batches, outside the timed part. Tracing is on (spans are created), without a processor.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import agents
from agents import FunctionTool, Model, ModelResponse, Usage
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from pydantic import BaseModel
from rich.console import Console

if __name__ == "__main__":
    # Not this folder, whose statistics.py would hide that of the standard library.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.measure import RATIO_WIDTHS, Rows, RunOnce, compare, environment, timed
from benchmarks.peers.catalog import BY_ID
from kantan_agents import Agent, set_trace_processors

INSTRUCTIONS = "You answer questions about the weather, briefly and politely."
GOALS = {
    "one turn": BY_ID["one_turn"].goal,
    "tool turn": BY_ID["tool_turn"].goal,
    "100 tools": BY_ID["tools_100"].goal,
    "structured": BY_ID["structured"].goal,
}


class Report(BaseModel):
    """A small structured output."""

    city: str
    degrees: float
    sunny: bool


class FakeModel(Model):
    """Answers at once with a text; calls ``tool_0`` first if ``calls_tool`` is set."""

    def __init__(self, text: str, *, calls_tool: bool = False) -> None:
        self._text = text
        self._calls_tool = calls_tool

    async def get_response(
        self, system_instructions: Any, input: Any, *_args: Any, **_kwargs: Any
    ) -> ModelResponse:
        """Answer."""
        item: Any
        if self._calls_tool and len(input) == 1:
            item = ResponseFunctionToolCall(
                type="function_call", call_id="call_1", name="tool_0", arguments='{"city": "Oslo"}'
            )
        else:
            text = ResponseOutputText(type="output_text", text=self._text, annotations=[])
            item = ResponseOutputMessage(
                id="m", type="message", role="assistant", status="completed", content=[text]
            )
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def stream_response(self, *_args: Any, **_kwargs: Any) -> Any:
        """Not measured here."""
        raise RuntimeError("this benchmark does not stream")


class WaitingModel(FakeModel):
    """Answers only after a signal, and so keeps runs open."""

    def __init__(self, gate: asyncio.Event) -> None:
        super().__init__("done")
        self._gate = gate

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Wait, then answer."""
        await self._gate.wait()
        return await super().get_response(*args, **kwargs)


def make_tools(count: int) -> list[FunctionTool]:
    """Return async function tools, so that neither side pays for a thread."""

    async def weather(city: str) -> str:
        """Tell the weather.

        Args:
            city: Where.
        """
        return f"sunny in {city}"

    return [agents.function_tool(weather, name_override=f"tool_{number}") for number in range(count)]


def pair(
    model: Model, tools: list[FunctionTool] | None = None, output_type: Any = None, **options: Any
) -> tuple[RunOnce, RunOnce]:
    """Return the same run on the plain SDK and on kantan_agents; only the latter gets ``options``."""
    plain = agents.Agent(
        name="bench",
        instructions=INSTRUCTIONS,
        model=model,
        tools=list(tools or ()),
        output_type=output_type,
    )
    ours = Agent("bench", INSTRUCTIONS, model=model, tools=tools, output_type=output_type, **options)

    async def run_plain() -> Any:
        return await agents.Runner.run(plain, "How is it in Oslo?", context={})

    async def run_ours() -> Any:
        return await ours.run_async("How is it in Oslo?")

    return run_plain, run_ours


def at_once(run: RunOnce, count: int) -> RunOnce:
    """Return one run that consists of ``count`` concurrent runs."""

    async def run_all() -> None:
        await asyncio.gather(*(run() for _ in range(count)))

    return run_all


async def memory_held(make: Callable[[Model], RunOnce], count: int) -> float:
    """Return the bytes that a run holds while it waits for its model, averaged over ``count`` runs."""
    gate = asyncio.Event()
    run = make(WaitingModel(gate))
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    tasks = [asyncio.create_task(run()) for _ in range(count)]
    for _ in range(60):
        await asyncio.sleep(0)
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    gate.set()
    await asyncio.gather(*tasks)
    return held / count


def workloads() -> dict[str, tuple[tuple[RunOnce, RunOnce], int]]:
    """Return the pair of each workload and its number of runs in a batch.

    Batches are short and many. If the machine slows down for a second, only a few pairs are spoiled, which
    the median ignores.
    """
    text = FakeModel("It is sunny.")
    calling = FakeModel("It is sunny.", calls_tool=True)
    report = FakeModel('{"city": "Oslo", "degrees": 21.5, "sunny": true}')
    one_turn = pair(text)
    return {
        "one turn": (one_turn, 20),
        "tool turn": (pair(calling, make_tools(1)), 10),
        "100 tools": (pair(text, make_tools(100)), 6),
        "structured": (pair(report, output_type=Report), 15),
        "50 at once": ((at_once(one_turn[0], 50), at_once(one_turn[1], 50)), 1),
    }


async def main(repeats: int, held_open: int) -> None:
    """Measure everything and print the table."""
    set_trace_processors([])
    console = Console(width=96)
    where = environment("openai-agents", "openai", "kantan-llm")
    console.print(f"{where}; {repeats} repeats", highlight=False)
    headings = ("workload", "plain SDK", "kantan_agents", "ratio", "A/A", "goal")
    show = Rows(console, *headings, widths=RATIO_WIDTHS)
    for name, ((plain, ours), count) in workloads().items():
        seconds, ratio = await compare(timed(plain), timed(ours), repeats, count)
        _, control = await compare(timed(plain), timed(plain), repeats, count)
        show.row(
            name,
            f"{seconds * 1e6:,.0f} us",
            f"{seconds * ratio * 1e6:,.0f} us",
            f"{ratio:.2f}",
            f"{control:.2f}",
            f"{GOALS[name]:.2f}" if name in GOALS else "-",
        )

    def make(side: int) -> Callable[[Model], RunOnce]:
        return lambda model: pair(model)[side]

    first, ours_held, second = [await memory_held(make(side), held_open) for side in (0, 1, 0)]
    show.row(
        f"memory, {held_open:,} open",
        f"{first / 1024:,.1f} KiB/run",
        f"{ours_held / 1024:,.1f} KiB/run",
        f"{ours_held / first:.2f}",
        f"{second / first:.2f}",
        "-",
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=61, help="batches a side (default 61)")
    parser.add_argument("--quick", action="store_true", help="3 repeats and 500 runs held open")
    arguments = parser.parse_args()
    if arguments.quick:
        asyncio.run(main(3, 500))
    else:
        asyncio.run(main(max(9, arguments.repeats), 5_000))
