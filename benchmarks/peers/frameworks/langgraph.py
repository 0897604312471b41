"""The workloads on langchain's ``create_agent``, which makes a langgraph graph: ``ainvoke``, ``astream``."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypedDict

from langchain.agents import create_agent
from langchain.agents.middleware import ModelRequest, dynamic_prompt
from langchain.agents.structured_output import ProviderStrategy
from langchain.tools import BaseTool, ToolRuntime, tool
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, ToolMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command
from pydantic import BaseModel, SecretStr

from benchmarks.peers.frameworks import facts
from benchmarks.peers.frameworks.langgraph_model import FakeModel, StreamingModel

# A developer's settings must not send these runs to LangSmith; this variable overrides all others.
os.environ["LANGSMITH_TRACING_V2"] = "false"

RunOnce = Callable[[], Coroutine[Any, Any, object]]

PACKAGES = ("langgraph", "langchain", "langchain-core", "langchain-openai", "openai")
IMPORT = "from langchain.agents import create_agent; from langchain_openai import ChatOpenAI"


class Report(BaseModel):
    """The weather in a city."""

    city: str
    degrees: float
    sunny: bool


class User(TypedDict):
    """The user of a run."""

    name: str


class Context(TypedDict):
    """The context that the instructions are rendered from."""

    user: User
    locale: str


def make_tools(count: int) -> list[BaseTool]:
    """Return tools, each with its own schema."""

    async def weather(city: str) -> str:
        """Tell the weather.

        Args:
            city: Where.
        """
        return f"sunny in {city}"

    return [tool(facts.tool_name(number), parse_docstring=True)(weather) for number in range(count)]


def question() -> Any:
    """Return the input of a run."""
    return {"messages": [{"role": "user", "content": facts.QUESTION}]}


def make_agent(model: BaseChatModel, tools: list[BaseTool], **options: Any) -> Any:
    """Return an agent with the instructions of all frameworks."""
    return create_agent(model, tools, system_prompt=facts.INSTRUCTIONS, name=facts.AGENT, **options)


def plain_run(agent: Any, expected: str = facts.ANSWER) -> RunOnce:
    """Return a run of the agent, or graph of agents, whose last message must be the expected text."""

    async def run() -> None:
        state = await agent.ainvoke(question())
        facts.expect(state["messages"][-1].text, expected)

    return run


def with_tools(model: BaseChatModel, count: int) -> RunOnce:
    """Return a run of one turn with ``count`` tools attached, none of which is called."""
    return plain_run(make_agent(model, make_tools(count)))


def once(count: int) -> RunOnce:
    """Return a run of one turn that creates its agent, with tools created beforehand."""
    model, made = FakeModel(tools=count), make_tools(count)

    async def run() -> None:
        await plain_run(make_agent(model, made))()

    return run


def tool_turn(model: BaseChatModel) -> RunOnce:
    """Return a run whose model calls the tool, then answers."""
    agent = make_agent(model, make_tools(1))

    async def run() -> None:
        messages = (await agent.ainvoke(question()))["messages"]
        facts.expect(messages[-1].text, facts.ANSWER)
        # The question, the call, the tool's result, the answer.
        facts.expect(messages[2].text, facts.TOOL_RESULT)

    return run


def one_turn_rendered() -> RunOnce:
    """Return a run whose instructions are rendered from its context."""

    def instructions(request: ModelRequest[Context]) -> str:
        user, locale = request.runtime.context["user"], request.runtime.context["locale"]
        return f"You answer questions about the weather. The user is {user['name']}; answer in {locale}."

    model = FakeModel(instructions=facts.RENDERED)
    agent = create_agent(
        model, middleware=[dynamic_prompt(instructions)], context_schema=Context, name=facts.AGENT
    )

    async def run() -> None:
        context = Context(user=User(name=facts.USER_NAME), locale=facts.LOCALE)
        state = await agent.ainvoke(question(), context=context)
        facts.expect(state["messages"][-1].text, facts.ANSWER)

    return run


def structured() -> RunOnce:
    """Return a run with a typed result, by the JSON schema response format of the model."""
    agent = make_agent(FakeModel(text=facts.REPORT_JSON), [], response_format=ProviderStrategy(Report))
    expected = Report.model_validate(facts.REPORT)

    async def run() -> None:
        state = await agent.ainvoke(question())
        facts.expect(state["structured_response"], expected)

    return run


def handing_off(target: str) -> BaseTool:
    """Return the tool that continues with another agent of the surrounding graph."""

    async def hand_over(runtime: ToolRuntime) -> Command[str]:
        result = ToolMessage(f"Handed over to {target}.", tool_call_id=runtime.tool_call_id)
        messages = [runtime.state["messages"][-1], result]
        return Command(goto=target, update={"messages": messages}, graph=Command.PARENT)

    return tool(f"transfer_to_{target}", description=f"Hand over to {target}.")(hand_over)


def with_handoffs(*, taken: bool) -> RunOnce:
    """Return a run of a graph of agents, in which the first may hand over to the others."""
    names = [facts.target_name(number) for number in range(facts.TARGETS)]
    tools = [handing_off(name) for name in names]
    model = FakeModel(call=(tools[-1].name, {}) if taken else None, tools=facts.TARGETS)
    graph = StateGraph(MessagesState)
    graph.add_node(facts.AGENT, make_agent(model, tools), destinations=tuple(names))
    graph.add_edge(START, facts.AGENT)
    graph.add_edge(facts.AGENT, END)
    for name in names:
        target = create_agent(
            FakeModel(text=facts.TARGET_ANSWER), system_prompt=facts.INSTRUCTIONS, name=name
        )
        graph.add_node(name, target)
        graph.add_edge(name, END)
    return plain_run(graph.compile(), facts.TARGET_ANSWER if taken else facts.ANSWER)


def streaming() -> RunOnce:
    """Return a run whose answer comes in deltas, taken one by one."""
    agent = make_agent(StreamingModel(), [])

    async def run() -> None:
        deltas = []
        async for message, _metadata in agent.astream(question(), stream_mode="messages"):
            # The last chunk of a message is empty and marks its end.
            if isinstance(message, AIMessageChunk) and message.content:
                deltas.append(str(message.content))
        facts.expect(len(deltas), len(facts.DELTAS))
        facts.expect("".join(deltas), facts.STREAMED)

    return run


def http_model() -> BaseChatModel:
    """Return the framework's own model class, with a client for the server of the benchmark."""
    address = os.environ[facts.BASE_URL_VARIABLE]
    return ChatOpenAI(
        model=facts.MODEL, use_responses_api=True, base_url=address, api_key=SecretStr(facts.KEY)
    )


def constructing(tools: int) -> Callable[[], object]:
    """Return a function that creates an agent with ``count`` tools, which are created beforehand."""
    model, made = FakeModel(), make_tools(tools)
    return lambda: make_agent(model, made)


RUNS: dict[str, Callable[[], RunOnce]] = {
    "one_turn": lambda: with_tools(FakeModel(), 0),
    "one_turn_rendered": one_turn_rendered,
    "tool_turn": lambda: tool_turn(FakeModel(call=(facts.TOOL_NAME, {"city": facts.CITY}), tools=1)),
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
    "traced": "langgraph sends its traces to the LangSmith service; it has no recorder.",
    "untraced": "It is the counterpart of the traced run, which langgraph does not have.",
}
