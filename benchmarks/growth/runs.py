"""Curves of runs: by number of tools, rules, history entries, context entries and concurrent runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import agents

from benchmarks.growth.checked_runs import CheckingModel, answered
from benchmarks.growth.curve import PLAIN, Curve, Sides
from benchmarks.measure import RunOnce, timed
from benchmarks.overhead import INSTRUCTIONS, at_once, make_tools, pair
from kantan_agents import Agent

_QUESTION = "How is it in Oslo?"
_TOOL_OUTPUT = "sunny in Oslo"
_HISTORY_AT_LEAST = 2
"""Entries that a run adds to a history."""


@asynccontextmanager
async def tools(size: int, _folder: Path) -> AsyncIterator[Sides]:
    """Yield a run of one turn whose model is shown ``size`` tools."""
    model = CheckingModel(lambda _instructions, _input, shown: len(shown) == size)
    yield _sides(*pair(model, make_tools(size)))


@asynccontextmanager
async def rules(size: int, _folder: Path) -> AsyncIterator[Sides]:
    """Yield a run that calls a tool under an allow list of ``size`` names; the other side has no rules."""
    model = CheckingModel(_tool_has_answered, calls_tool=True)
    plain, _ = pair(model, make_tools(1))
    ours = Agent("bench", INSTRUCTIONS, model=model, tools=make_tools(1))
    allowed = [f"tool_{number}" for number in reversed(range(size))]

    async def run_ours() -> Any:
        # As in a service, each run gets a new object with the same rules.
        return await ours.run_async(_QUESTION, {"tool_rules": {"allow": allowed}})

    yield _sides(plain, run_ours)


def _tool_has_answered(_instructions: str, items: list[Any], shown: list[Any]) -> bool:
    return len(shown) == 1 and (len(items) == 1 or items[-1].get("output") == _TOOL_OUTPUT)


@asynccontextmanager
async def history(size: int, _folder: Path) -> AsyncIterator[Sides]:
    """Yield a run with ``size`` input messages; kantan_agents keeps as many in its history."""
    model = CheckingModel(lambda _instructions, items, _tools: len(items) == size)
    messages: list[Any] = [
        {"role": "assistant" if number % 2 else "user", "content": f"{_QUESTION} {number}"}
        for number in range(size)
    ]
    kept = [{"role": message["role"], "text": message["content"]} for message in messages]
    plain = agents.Agent(name="bench", instructions=INSTRUCTIONS, model=model)
    limit = max(size, _HISTORY_AT_LEAST)
    ours = Agent("bench", INSTRUCTIONS, model=model, history=limit)
    context: dict[str, Any] = {"history": kept}

    async def run_plain() -> Any:
        return await agents.Runner.run(plain, messages, context={})

    async def run_ours() -> Any:
        return await ours.run_async(messages, context)

    yield _sides(run_plain, run_ours)
    if len(context["history"]) != limit:
        raise RuntimeError(f"a history of {limit} has {len(context['history'])} entries")


@asynccontextmanager
async def context(size: int, _folder: Path) -> AsyncIterator[Sides]:
    """Yield a run whose instructions use one entry of a context with ``size`` entries."""
    user = f"user-{size - 1}"
    entries = {f"key_{number}": f"user-{number}" for number in range(size)}
    text = f"{INSTRUCTIONS} You speak with"
    model = CheckingModel(lambda instructions, _input, _tools: instructions == f"{text} {user}")
    key = f"key_{size - 1}"

    def instructions(wrapper: agents.RunContextWrapper[Any], _agent: agents.Agent[Any]) -> str:
        return f"{text} {wrapper.context[key]}"

    plain = agents.Agent(name="bench", instructions=instructions, model=model)
    ours = Agent("bench", f"{text} {{{{ $ctx.{key} }}}}", model=model)
    plain_context, our_context = dict(entries), dict(entries)

    async def run_plain() -> Any:
        return await agents.Runner.run(plain, _QUESTION, context=plain_context)

    async def run_ours() -> Any:
        return await ours.run_async(_QUESTION, our_context)

    yield _sides(run_plain, run_ours)


@asynccontextmanager
async def concurrency(size: int, _folder: Path) -> AsyncIterator[Sides]:
    """Yield ``size`` concurrent runs of one turn."""
    model = CheckingModel(lambda _instructions, items, _tools: len(items) == 1)
    yield _sides(*pair(model), together=size)


def _sides(plain: RunOnce, ours: RunOnce, *, together: int | None = None) -> Sides:
    start: Callable[[RunOnce], RunOnce] = (
        answered if together is None else lambda run: at_once(answered(run), together)
    )
    return Sides(ours=timed(start(ours)), other=timed(start(plain)), units=together or 1)


RUN_CURVES = (
    Curve(
        name="tools",
        title="One turn, tools the model is shown",
        x="tools",
        per="run",
        sizes=(1, 10, 100, 1_000, 3_000),
        quick_sizes=(1, 100),
        sides=tools,
        other=PLAIN,
    ),
    Curve(
        name="rules",
        title="Tool turn, names in an allow list",
        x="names",
        per="run",
        sizes=(1, 10, 100, 1_000, 10_000),
        quick_sizes=(1, 1_000),
        sides=rules,
        other=f"{PLAIN}, no rules",
    ),
    Curve(
        name="history",
        title="One turn, messages of input and history",
        x="messages",
        per="run",
        sizes=(1, 10, 100, 1_000, 10_000),
        quick_sizes=(1, 1_000),
        sides=history,
        other=PLAIN,
    ),
    Curve(
        name="context",
        title="One turn, entries in the context, one used",
        x="entries",
        per="run",
        sizes=(1, 100, 1_000, 10_000, 100_000),
        quick_sizes=(1, 10_000),
        sides=context,
        other=PLAIN,
    ),
    Curve(
        name="concurrency",
        title="One turn, runs at the same time",
        x="runs",
        per="run",
        sizes=(1, 10, 100, 1_000, 2_000),
        quick_sizes=(1, 50),
        sides=concurrency,
        other=PLAIN,
    ),
)
