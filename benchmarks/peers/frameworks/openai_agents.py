"""The workloads on the plain OpenAI Agents SDK, the baseline of the comparison."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import agents
from agents import Model, OpenAIResponsesModel, RunContextWrapper, Runner, Tool
from kantan_llm.tracing import SQLiteTracer
from openai.types.responses import ResponseTextDeltaEvent

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

PACKAGES = ("openai-agents", "openai", "pydantic", "kantan-llm")
IMPORT = "from agents import Agent, Runner"
ABSENT: dict[str, str] = {}

agents.set_trace_processors([])


def _agent(model: Model, **options: Any) -> agents.Agent[Any]:
    return agents.Agent(**{"name": facts.AGENT, "instructions": facts.INSTRUCTIONS, **options}, model=model)


def _run(agent: agents.Agent[Any], answer: object = facts.ANSWER) -> RunOnce:
    async def run() -> None:
        result = await Runner.run(agent, facts.QUESTION, context={})
        facts.expect(result.final_output, answer)

    return run


def _one_turn() -> RunOnce:
    return _run(_agent(FakeModel()))


def _one_turn_rendered() -> RunOnce:
    def instructions(run: RunContextWrapper[dict[str, Any]], _agent: agents.Agent[Any]) -> str:
        user, locale = run.context["user"], run.context["locale"]
        return f"You answer questions about the weather. The user is {user['name']}; answer in {locale}."

    agent = _agent(FakeModel(instructions=facts.RENDERED), instructions=instructions)

    async def run() -> None:
        context = {"user": {"name": facts.USER_NAME}, "locale": facts.LOCALE}
        result = await Runner.run(agent, facts.QUESTION, context=context)
        facts.expect(result.final_output, facts.ANSWER)

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


def _targets() -> list[agents.Agent[Any]]:
    return [
        _agent(FakeModel(facts.TARGET_ANSWER), name=facts.target_name(number))
        for number in range(facts.TARGETS)
    ]


def _handoffs() -> RunOnce:
    return _run(_agent(FakeModel(handoffs=facts.TARGETS), handoffs=_targets()))


def _handoff_taken() -> RunOnce:
    return _run(_agent(handing_over(), handoffs=_targets()), facts.TARGET_ANSWER)


def _streaming() -> RunOnce:
    agent = _agent(StreamingModel())

    async def run() -> None:
        result = Runner.run_streamed(agent, facts.QUESTION, context={})
        deltas = [
            event.data.delta
            async for event in result.stream_events()
            if event.type == "raw_response_event" and isinstance(event.data, ResponseTextDeltaEvent)
        ]
        facts.expect((len(deltas), "".join(deltas)), (len(facts.DELTAS), facts.STREAMED))

    return run


def _http(tools: int) -> RunOnce:
    model = OpenAIResponsesModel(model=facts.MODEL, openai_client=client())
    return _run(_agent(model, tools=make_tools(tools)))


def _traced() -> RunOnce:
    tracer: Any = SQLiteTracer(os.environ[facts.TRACE_FILE_VARIABLE])
    agents.set_trace_processors([tracer])
    return _run(_agent(FakeModel(traces=True)))


def _untraced() -> RunOnce:
    agents.set_trace_processors([])
    return _run(_agent(FakeModel(traces=True)))


def _construct(count: int) -> Callable[[], object]:
    model: Model = FakeModel()
    tools: list[Tool] = [*make_tools(count)]
    return lambda: agents.Agent(name=facts.AGENT, instructions=facts.INSTRUCTIONS, model=model, tools=tools)


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
