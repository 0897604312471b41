"""The workloads on pydantic-ai: agents made once, run with ``Agent.run`` and ``Agent.run_stream``."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, RunContext, Tool, ToolOutput
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from benchmarks.peers.frameworks import facts
from benchmarks.peers.frameworks.pydantic_ai_model import FakeModel

RunOnce = Callable[[], Coroutine[Any, Any, object]]
Context = dict[str, Any]

PACKAGES = ("pydantic-ai-slim", "pydantic", "openai")
IMPORT = "from pydantic_ai import Agent; from pydantic_ai.models.openai import OpenAIResponsesModel"


class Report(BaseModel):
    """The weather in a city."""

    city: str
    degrees: float
    sunny: bool


def make_tools(count: int) -> list[Tool[Any]]:
    """Return tools, each with a schema of its own."""

    async def weather(city: str) -> str:
        """Tell the weather.

        Args:
            city: Where.
        """
        return f"sunny in {city}"

    return [Tool(weather, name=facts.tool_name(number)) for number in range(count)]


def plain_run(agent: Agent[Any, Any], expected: object = facts.ANSWER) -> RunOnce:
    """Return a run of the agent whose output must be the expected one."""

    async def run() -> None:
        result = await agent.run(facts.QUESTION)
        facts.expect(result.output, expected)

    return run


def make_agent(model: Model[Any], tools: list[Tool[Any]], **options: Any) -> Agent[Any, Any]:
    """Return an agent with the instructions all frameworks are given."""
    return Agent(model, name=facts.AGENT, instructions=facts.INSTRUCTIONS, tools=tools, **options)


def with_tools(model: Model[Any], count: int) -> RunOnce:
    """Return a run of one turn with so many tools attached, none called."""
    return plain_run(make_agent(model, make_tools(count)))


def once(count: int) -> RunOnce:
    """Return a run of one turn for which an agent is made, with tools made beforehand."""
    model, made = FakeModel(tools=count), make_tools(count)

    async def run() -> None:
        await plain_run(make_agent(model, made))()

    return run


def tool_turn(model: Model[Any]) -> RunOnce:
    """Return a run whose model calls the tool, then answers."""
    agent = make_agent(model, make_tools(1))

    async def run() -> None:
        result = await agent.run(facts.QUESTION)
        facts.expect(result.output, facts.ANSWER)
        # The question, the call, the tool's result, the answer.
        part = result.all_messages()[2].parts[0]
        facts.expect(part.content if isinstance(part, ToolReturnPart) else None, facts.TOOL_RESULT)

    return run


def one_turn_rendered() -> RunOnce:
    """Return a run whose instructions are made from its dependencies."""

    # Async, as pydantic-ai runs a sync one in a thread.
    async def instructions(run: RunContext[Context]) -> str:
        user, locale = run.deps["user"], run.deps["locale"]
        return f"You answer questions about the weather. The user is {user['name']}; answer in {locale}."

    model = FakeModel(instructions=facts.RENDERED)
    agent = Agent(model, name=facts.AGENT, instructions=instructions, deps_type=Context)

    async def run() -> None:
        deps = {"user": {"name": facts.USER_NAME}, "locale": facts.LOCALE}
        result = await agent.run(facts.QUESTION, deps=deps)
        facts.expect(result.output, facts.ANSWER)

    return run


def structured() -> RunOnce:
    """Return a run whose output is typed, by the JSON schema response format of the model."""
    agent = make_agent(FakeModel(facts.REPORT_JSON), [], output_type=NativeOutput(Report))
    return plain_run(agent, Report.model_validate(facts.REPORT))


def handing_off(target: Agent[Any, str]) -> ToolOutput[str]:
    """Return the output function that hands over to another agent, with the conversation so far."""

    async def hand_over(run: RunContext[Any]) -> str:
        # The last message is the call of this function, which is not for the other agent.
        history = run.messages[:-1]
        output: str = (await target.run(message_history=history, usage=run.usage)).output
        return output

    name = f"transfer_to_{target.name}"
    return ToolOutput(hand_over, name=name, description=f"Hand over to {target.name}.")


def with_handoffs(*, taken: bool) -> RunOnce:
    """Return a run of an agent with hand-off targets, of which the last is taken or none."""
    targets: list[Agent[Any, str]] = [
        Agent(FakeModel(facts.TARGET_ANSWER), name=facts.target_name(number), instructions=facts.INSTRUCTIONS)
        for number in range(facts.TARGETS)
    ]
    outputs = [handing_off(target) for target in targets]
    call = (f"transfer_to_{targets[-1].name}", "{}") if taken else None
    model = FakeModel(call=call, handoffs=facts.TARGETS)
    agent = make_agent(model, [], output_type=[str, *outputs])
    return plain_run(agent, facts.TARGET_ANSWER if taken else facts.ANSWER)


def streaming() -> RunOnce:
    """Return a run whose answer comes in deltas, taken one by one."""
    agent = make_agent(FakeModel(), [])

    async def run() -> None:
        async with agent.run_stream(facts.QUESTION) as result:
            # By default the deltas of a tenth of a second come as one.
            deltas = [delta async for delta in result.stream_text(delta=True, debounce_by=None)]
        facts.expect(len(deltas), len(facts.DELTAS))
        facts.expect("".join(deltas), facts.STREAMED)

    return run


def http_model() -> Model[Any]:
    """Return the framework's own model class, with a client for the server of the benchmark."""
    provider = OpenAIProvider(base_url=os.environ[facts.BASE_URL_VARIABLE], api_key=facts.KEY)
    return OpenAIResponsesModel(facts.MODEL, provider=provider)


def constructing(tools: int) -> Callable[[], object]:
    """Return what makes one agent with so many tools, which are made beforehand."""
    model, made = FakeModel(), make_tools(tools)
    return lambda: make_agent(model, made)


RUNS: dict[str, Callable[[], RunOnce]] = {
    "one_turn": lambda: with_tools(FakeModel(), 0),
    "one_turn_rendered": one_turn_rendered,
    "tool_turn": lambda: tool_turn(FakeModel(call=(facts.TOOL_NAME, facts.TOOL_ARGUMENTS), tools=1)),
    "tools_100": lambda: with_tools(FakeModel(tools=100), 100),
    "tools_1000": lambda: with_tools(FakeModel(tools=1_000), 1_000),
    "once_100": lambda: once(100),
    "structured": structured,
    "handoffs_10": lambda: with_handoffs(taken=False),
    "handoff_taken": lambda: with_handoffs(taken=True),
    "streaming": streaming,
    "http_one_turn": lambda: with_tools(http_model(), 0),
    "http_tool_turn": lambda: tool_turn(http_model()),
    "http_tools_100": lambda: with_tools(http_model(), 100),
}
CONSTRUCTIONS: dict[str, Callable[[], Callable[[], object]]] = {
    "construct_0": lambda: constructing(0),
    "construct_100": lambda: constructing(100),
}
HELD: dict[str, Callable[[Callable[[], Awaitable[None]]], RunOnce]] = {
    "held_0": lambda wait: with_tools(FakeModel(wait=wait), 0),
    "held_100": lambda wait: with_tools(FakeModel(tools=100, wait=wait), 100),
}
ABSENT = {
    "traced": "pydantic-ai sends its traces to an OpenTelemetry service; it has no recorder.",
    "untraced": "It is the counterpart of the traced run, which pydantic-ai does not have.",
}
