"""Measures the cost and the recall of choosing an agent's tools among many.

    python benchmarks/retrieval.py [--repeats 15] [--quick] [--plot FILE] [--strict]

The labelled set is ``benchmarks/retrieval_data``: 1,000 tools, described in English, Japanese and Chinese,
and requests in each language with the tools that answer them. The held-out set has English requests by
another author, most of which do not name their subject; nothing was tuned on it, and it has no goal. 10,000
tools are ten offices with these tools each. A figure is the median over short batches; ``A/A`` is a side
measured against itself. The model of the runs answers at once. Tokens are estimated as UTF-8 bytes of the
definitions divided by 4; tokenizers differ, most of all for Japanese and Chinese.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import sys
import time
import tracemalloc
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import attrs
from agents import FunctionTool, Model, ModelResponse, Usage, set_tracing_disabled
from rich.console import Console

if __name__ == "__main__":
    # Not this folder, whose statistics.py would hide that of the standard library.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.measure import Rows, compare, environment, timed
from benchmarks.report import microseconds, milliseconds
from benchmarks.retrieval_data import (
    LANGUAGES,
    LabelledRequest,
    held_out_requests,
    labelled_requests,
    labelled_tools,
)
from kantan_agents import Agent, ToolRetrieval
from kantan_agents.testing import assistant_message, function_call
from kantan_agents.tools.retrieval import BM25Retriever, ToolDocument, ToolIndex

SIZES = (10, 100, 1_000, 10_000)
TOP_N = 8
SELECTION_GOAL = 2e-3
RUN_GOAL = 1.3
RECALL_GOALS = {"en": 0.95, "ja": 0.90, "zh": 0.90}
OFFICES = ("berlin", "osaka", "lima", "oslo", "cairo", "delhi", "quito", "seoul", "tunis", "paris")
BYTES_PER_TOKEN = 4


class Quick(Model):
    """A model that answers at once.

    Args:
        calls: Number of times that it calls the last tool it is shown, before it answers with text.
    """

    def __init__(self, calls: int) -> None:
        self.calls = calls
        self.shown = 0

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Return a tool call or the answer, and record how many tools the model was shown."""
        tools = kwargs["tools"] if "tools" in kwargs else args[3]
        given = kwargs["input"] if "input" in kwargs else args[1]
        self.shown = len(tools)
        called = sum(item.get("type") == "function_call" for item in given if isinstance(item, dict))
        if called < self.calls:
            return ModelResponse([function_call(tools[-1].name, {}, call_id="c")], Usage(), None)
        return ModelResponse([assistant_message("done")], Usage(), None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        """Not used: no run of this benchmark streams."""
        raise NotImplementedError


def tools_of_offices(count: int) -> list[FunctionTool]:
    """Return ``count`` tools: those of the labelled set, for one office after the other."""
    labelled = labelled_tools()
    if count <= len(labelled):
        return labelled[:: len(labelled) // count][:count]
    made = (
        renamed(tool, f"{tool.name}_{office}", f"{tool.description} For the {office.title()} office.")
        for office, tool in itertools.product(OFFICES, labelled)
    )
    return list(itertools.islice(made, count))


def renamed(tool: FunctionTool, name: str, description: str) -> FunctionTool:
    """Return the tool with another name."""
    return FunctionTool(name, description, tool.params_json_schema, tool.on_invoke_tool)


def documents_of(tools: Sequence[FunctionTool]) -> list[ToolDocument]:
    """Return the documents that an agent with these tools indexes."""
    from kantan_agents.tools.retrieval.retrievers.retriever import document_of

    return [document_of(tool) for tool in tools]


def tokens_of(tools: Sequence[FunctionTool]) -> int:
    """Return the approximate number of tokens of the definitions."""
    definitions = (
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.params_json_schema,
        }
        for tool in tools
    )
    texts = (json.dumps(definition, ensure_ascii=False) for definition in definitions)
    return sum(len(text.encode()) for text in texts) // BYTES_PER_TOKEN


@attrs.define
class Printed:
    """Prints figures and records the missed goals."""

    console: Console
    repeats: int
    missed: list[str] = attrs.field(factory=list)

    def judged(self, name: str, shown: str, *, met: bool) -> str:
        """Return the verdict on a goal, and record a missed one."""
        if not met:
            self.missed.append(f"{name}: {shown}")
        return "met" if met else "missed"


async def index_and_selection(printed: Printed, sizes: Sequence[int]) -> dict[str, list[float]]:
    """Print the cost of indexing and of selecting; return the seconds by size."""
    columns = ("index", "memory", "selection", "A/A", "tokens, all", f"tokens, {TOP_N}", "goal")
    rows = Rows(printed.console, "tools", *columns, widths=(8, 12, 10, 14, 7, 13, 11, 8))
    series: dict[str, list[float]] = {"index": [], "selection": []}
    texts = itertools.cycle([each.text for language in LANGUAGES for each in labelled_requests(language)])
    for size in sizes:
        tools = tools_of_offices(size)
        index, seconds, memory = indexed(documents_of(tools))

        async def select(index: ToolIndex = index) -> None:
            await index.search(next(texts), 2 * TOP_N)  # type: ignore[misc]

        count = sum(len(labelled_requests(language)) for language in LANGUAGES)
        selection, noise = await compare(timed(select), timed(select), printed.repeats, count)
        chosen = await index.search("create an invoice and send it", TOP_N)  # type: ignore[misc]
        by_name = {tool.name: tool for tool in tools}
        few = tokens_of([by_name[match.name] for match in chosen])
        verdict = printed.judged(
            f"selection among {size:,}", microseconds(selection), met=selection <= SELECTION_GOAL
        )
        figures = (milliseconds(seconds), f"{memory / 1e6:.1f} MB", microseconds(selection), f"{noise:.2f}")
        rows.row(f"{size:,}", *figures, f"{tokens_of(tools):,}", f"{few:,}", verdict)
        series["index"].append(seconds)
        series["selection"].append(selection)
    return series


def indexed(documents: Sequence[ToolDocument]) -> tuple[ToolIndex, float, int]:
    """Return an index, the seconds to build it, and its size in bytes, measured separately."""
    BM25Retriever().index(documents[:1])  # imports at the first use must not count
    start = time.perf_counter()
    index = BM25Retriever().index(documents)
    seconds = time.perf_counter() - start
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept = BM25Retriever().index(documents)
    memory = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    del kept
    return index, seconds, memory


async def recall(printed: Printed) -> None:
    """Print the recall of the labelled requests: how often a right tool is among the first 8 of 1,000."""
    tools = labelled_tools()
    index = BM25Retriever().index(documents_of(tools))
    rows = Rows(
        printed.console, "recall@8", "requests", "found", "recall", "goal", "", widths=(10, 10, 8, 8, 6, 8)
    )
    for language, goal in RECALL_GOALS.items():
        requests = labelled_requests(language)
        found = await answered(index, requests)
        figure = found / len(requests)
        verdict = printed.judged(f"recall@8 {language}", f"{figure:.3f}", met=figure >= goal)
        rows.row(language, str(len(requests)), str(found), f"{figure:.3f}", f"{goal:.2f}", verdict)
    held_out = held_out_requests()
    found = await answered(index, held_out)
    rows.row("held out", str(len(held_out)), str(found), f"{found / len(held_out):.3f}", "", "")


async def answered(index: ToolIndex, requests: Sequence[LabelledRequest]) -> int:
    """Return for how many requests a right tool is among the first 8."""
    found = 0
    for request in requests:
        matches = await index.search(request.text, TOP_N)  # type: ignore[misc]
        found += any(match.name in request.tools for match in matches)
    return found


async def runs(printed: Printed, most: int) -> None:
    """Print the cost of a run with many registered tools against one with 8."""
    many = tools_of_offices(most)
    start = time.perf_counter()
    Agent("many", "Help.", tools=many, model=Quick(0), tool_retrieval=ToolRetrieval(TOP_N))
    making = time.perf_counter() - start
    columns = ("shown", "median", "ratio", "A/A", "goal", "")
    rows = Rows(printed.console, "run", *columns, widths=(36, 8, 14, 7, 6, 6, 8))
    for calls, name in enumerate(("one turn", "one tool call")):
        few_model, model = Quick(calls), Quick(calls)
        few = Agent("few", "Help.", tools=labelled_tools()[:TOP_N], model=few_model)
        agent = Agent("many", "Help.", tools=many, model=model, tool_retrieval=ToolRetrieval(TOP_N))
        one, other = timed(requests_to(few)), timed(requests_to(agent))
        seconds, ratio = await compare(one, other, 2 * printed.repeats, 20)
        _, noise = await compare(one, one, 2 * printed.repeats, 20)
        few_figures = (str(few_model.shown), microseconds(seconds), "1.00", f"{noise:.2f}")
        rows.row(f"{name}, {TOP_N} tools, no retrieval", *few_figures, "", "")
        verdict = printed.judged(f"{name} with {most:,} tools", f"{ratio:.2f} times", met=ratio <= RUN_GOAL)
        figures = (microseconds(seconds * ratio), f"{ratio:.2f}", "", f"{RUN_GOAL:.2f}", verdict)
        rows.row(f"{name}, {most:,} tools, retrieval", str(model.shown), *figures)
    printed.console.print(f"making the Agent with {most:,} tools: {milliseconds(making)}", highlight=False)


def requests_to(agent: Agent) -> Callable[[], Coroutine[Any, Any, Any]]:
    """Return a function that runs an agent with one labelled request after the other."""
    texts = itertools.cycle([each.text for language in LANGUAGES for each in labelled_requests(language)])

    async def run() -> None:
        await agent.run_async(next(texts))

    return run


async def main(repeats: int, sizes: Sequence[int], plot: Path | None) -> list[str]:
    """Measure everything, print it and return the missed goals."""
    set_tracing_disabled(disabled=True)
    console = Console(width=110)
    machine = environment("bm25s", "numpy", "snowballstemmer", "openai-agents")
    console.print(f"{machine}; {repeats} repeats\n", highlight=False, markup=False, soft_wrap=True)
    printed = Printed(console, repeats)
    series = await index_and_selection(printed, sizes)
    console.print()
    await recall(printed)
    console.print()
    await runs(printed, sizes[-1])
    if plot is not None:
        draw(sizes, series, plot, machine)
        console.print(f"\ndrawn: {plot}", highlight=False, markup=False)
    for miss in printed.missed:
        console.print(f"GOAL MISSED: {miss}", highlight=False, markup=False)
    return printed.missed


def draw(sizes: Sequence[int], series: dict[str, list[float]], path: Path, machine: str) -> None:
    """Draw milliseconds against the number of tools. Needs matplotlib."""
    from benchmarks.plot import cost_plot

    title, caption = "What choosing tools costs as their number grows", f"The labelled set, {machine}"
    with cost_plot(path, sizes, title=title, x="tools", y="milliseconds", caption=caption) as axes:
        for (label, seconds), colour in zip(series.items(), ("#2a6fbb", "#2f7d4f"), strict=True):
            axes.plot(sizes, [value * 1e3 for value in seconds], "o-", color=colour, label=label, lw=2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15, help="batches a side (default 15)")
    parser.add_argument("--quick", action="store_true", help="3 repeats")
    parser.add_argument("--plot", type=Path, help="draw the cost against the number of tools, as PNG")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a goal is missed")
    arguments = parser.parse_args()
    repeats = 3 if arguments.quick else arguments.repeats
    missed = asyncio.run(main(repeats, SIZES, arguments.plot))
    sys.exit(1 if missed and arguments.strict else 0)
