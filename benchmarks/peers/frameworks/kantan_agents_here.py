"""The workloads on kantan_agents in this repository."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

from kantan_llm import AsyncClientBundle

from benchmarks.peers.frameworks import facts
from benchmarks.peers.frameworks.sdk_model import (
    REPORT,
    FakeModel,
    Report,
    RunOnce,
    StreamingModel,
    Wait,
    calling_tool,
    client,
    handing_over,
    make_tools,
)
from kantan_agents import Agent, record_traces, set_trace_processors

PACKAGES = ("kantan-agents", "openai-agents", "openai", "pydantic", "kantan-llm")
IMPORT = "from kantan_agents import Agent"
ABSENT: dict[str, str] = {}
WRITTEN: dict[str, Callable[[], bool]] = {}
"""Functions that wait until everything that a workload records is in the file; they end a batch."""

_RENDERED = (
    "You answer questions about the weather. The user is {{ $ctx.user.name }}; answer in {{ $ctx.locale }}."
)

set_trace_processors([])


def _agent(model: object, **options: Any) -> Agent:
    return Agent(facts.AGENT, facts.INSTRUCTIONS, model=model, **options)


def _run(agent: Agent, answer: object = facts.ANSWER) -> RunOnce:
    async def run() -> None:
        context = await agent.run_async(facts.QUESTION)
        facts.expect(context["result"].final_output, answer)

    return run


def _one_turn() -> RunOnce:
    return _run(_agent(FakeModel()))


def _one_turn_rendered() -> RunOnce:
    agent = Agent(facts.AGENT, _RENDERED, model=FakeModel(instructions=facts.RENDERED))

    async def run() -> None:
        context: dict[str, Any] = {"user": {"name": facts.USER_NAME}, "locale": facts.LOCALE}
        await agent.run_async(facts.QUESTION, context)
        facts.expect(context["result"].final_output, facts.ANSWER)

    return run


def _tool_turn() -> RunOnce:
    return _run(_agent(calling_tool(), tools=make_tools(1)))


def _tools(count: int) -> RunOnce:
    return _run(_agent(FakeModel(tools=count), tools=make_tools(count)))


def _once(count: int) -> RunOnce:
    model, tools = FakeModel(tools=count), [*make_tools(count)]

    async def run() -> None:
        await _run(_agent(model, tools=tools))()

    return run


def _structured() -> RunOnce:
    return _run(_agent(FakeModel(facts.REPORT_JSON), output_type=Report), REPORT)


def _targets() -> list[Agent]:
    return [
        Agent(facts.target_name(number), facts.INSTRUCTIONS, model=FakeModel(facts.TARGET_ANSWER))
        for number in range(facts.TARGETS)
    ]


def _handoffs() -> RunOnce:
    return _run(_agent(FakeModel(handoffs=facts.TARGETS), handoffs=_targets()))


def _handoff_taken() -> RunOnce:
    return _run(_agent(handing_over(), handoffs=_targets()), facts.TARGET_ANSWER)


def _streaming() -> RunOnce:
    agent = _agent(StreamingModel())

    async def run() -> None:
        async with agent.stream(facts.QUESTION) as stream:
            deltas = [delta async for delta in stream.text_deltas()]
        facts.expect((len(deltas), "".join(deltas)), (len(facts.DELTAS), facts.STREAMED))

    return run


def _http(tools: int) -> RunOnce:
    server = client()
    bundle = AsyncClientBundle(server, facts.MODEL, "openai", str(server.base_url))
    return _run(_agent(bundle, tools=make_tools(tools)))


def _traced() -> RunOnce:
    recorder = record_traces(os.environ[facts.TRACE_FILE_VARIABLE])
    WRITTEN["traced"] = recorder.force_flush
    return _run(_agent(FakeModel(traces=True)))


def _untraced() -> RunOnce:
    set_trace_processors([])
    return _run(_agent(FakeModel(traces=True)))


def _construct(count: int) -> Callable[[], object]:
    model, tools = FakeModel(), make_tools(count)
    return lambda: Agent(facts.AGENT, facts.INSTRUCTIONS, model=model, tools=tools)


def _held(count: int, wait: Wait) -> RunOnce:
    return _run(_agent(FakeModel(tools=count, wait=wait), tools=make_tools(count)))


RUNS: dict[str, Callable[[], RunOnce]] = {
    "one_turn": _one_turn,
    "one_turn_rendered": _one_turn_rendered,
    "tool_turn": _tool_turn,
    "tools_100": partial(_tools, 100),
    "tools_1000": partial(_tools, 1_000),
    "once_100": partial(_once, 100),
    "structured": _structured,
    "handoffs_10": _handoffs,
    "handoff_taken": _handoff_taken,
    "streaming": _streaming,
    "http_one_turn": partial(_http, 0),
    "http_tool_turn": partial(_http, 1),
    "http_tools_100": partial(_http, 100),
    "traced": _traced,
    "untraced": _untraced,
}
CONSTRUCTIONS: dict[str, Callable[[], Callable[[], object]]] = {
    "construct_0": partial(_construct, 0),
    "construct_100": partial(_construct, 100),
}
HELD: dict[str, Callable[[Wait], RunOnce]] = {
    "held_0": partial(_held, 0),
    "held_100": partial(_held, 100),
}
