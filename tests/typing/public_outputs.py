"""Checked by mypy and pyright: an agent's output type reaches the result of its runs."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import agents
import attrs
from hypothesis.strategies import SearchStrategy
from pydantic import BaseModel
from typing_extensions import TypedDict, assert_type

from kantan_agents import (
    Agent,
    AgentDefinition,
    JudgeSpan,
    Middleware,
    ModelCall,
    ModelNext,
    Next,
    Recording,
    Replay,
    Run,
    RunContext,
    RunResult,
    StoredSpan,
    ToolCall,
    ToolNext,
    TraceStore,
    TraceSummary,
    agent_of,
    replay,
    replay_async,
    run_of,
    run_result,
)
from kantan_agents.middleware import (
    Budget,
    Cache,
    CacheStats,
    CacheStore,
    ConcurrencyStats,
    Hedge,
    HedgeStats,
    LimitConcurrency,
    MemoryStore,
    SQLiteStore,
    resume,
    to_json,
)
from kantan_agents.testing import (
    OfflineServer,
    RecordedCall,
    RecordedRequest,
    Reply,
    ReplyLike,
    Script,
    ScriptedModel,
    ScriptedToolCall,
    function_call,
)
from kantan_agents.testing.properties import event, expect_events
from kantan_agents.testing.pytest_plugin import Replayed
from kantan_agents.testing.strategies import tool_calls, tool_rules


class Report(BaseModel):
    title: str


@dataclasses.dataclass
class Point:
    x: int


@attrs.frozen
class City:
    name: str


class Row(TypedDict):
    id: int


def infer(schema: dict[str, Any], sdk_schema: agents.AgentOutputSchemaBase, unknown: Any) -> None:
    assert_type(Agent("a", "b"), Agent[str])
    assert_type(Agent("a", "b", output_type=None), Agent[str])
    assert_type(Agent("a", "b", output_type=str), Agent[str])
    assert_type(Agent("a", "b", output_type=Report), Agent[Report])
    assert_type(Agent("a", "b", output_type=Point), Agent[Point])
    assert_type(Agent("a", "b", output_type=City), Agent[City])
    assert_type(Agent("a", "b", output_type=Row), Agent[Row])
    assert_type(Agent("a", "b", output_type=list[Report]), Agent[list[Report]])
    assert_type(Agent("a", "b", output_type=dict[str, int]), Agent[dict[str, int]])
    # Checkers have no type for these values, so the output may be anything.
    assert_type(Agent("a", "b", output_type=Report | Point), Agent[Any])
    assert_type(Agent("a", "b", output_type=Literal["yes", "no"]), Agent[Any])
    assert_type(Agent("a", "b", output_type={"type": "object", "properties": {}}), Agent[Any])
    assert_type(Agent("a", "b", output_type=schema), Agent[Any])
    assert_type(Agent("a", "b", output_type=sdk_schema), Agent[Any])
    assert_type(Agent("a", "b", output_type=unknown), Agent[Any])


def say_it(definition: AgentDefinition) -> None:
    by_schema: Agent[dict[str, object]] = Agent("a", "b", output_type={"type": "object"})
    assert_type(run_result(by_schema.run("x")).final_output, dict[str, object])
    any_agents: list[Agent[Any]] = [Agent("a", "b"), Agent("c", "d", output_type=Report)]
    assert_type(any_agents[0].run("x"), RunContext[Any])
    assert_type(Agent.from_definition(definition), Agent[str])
    assert_type(Agent.from_definition(definition, output_type=Report), Agent[Report])
    wrong: Agent[Point] = Agent("a", "b", output_type=Report)  # type: ignore[arg-type]
    assert_type(wrong, Agent[Point])
    Agent("a", "b", output_type=5)  # type: ignore[arg-type]
    Agent("a", "b", output_type=Report(title="x"))  # type: ignore[arg-type]


async def hand_to_the_sdk(agent: Agent[Report], support: Support) -> None:
    assert_type(agent.clone(name="b"), Agent[Report])
    assert_type(agent.clone(output_type=Point, name="b"), Agent[Point])
    assert_type(agent.clone(output_type=None), Agent[str])
    assert_type(support.clone(name="b"), Support)
    assert_type(agent.as_tool(), agents.FunctionTool)
    agent.as_tool("ask", "Ask.", needs_approval=True, max_turns=3)
    agent.as_tool(max_turns="3")  # type: ignore[arg-type]
    plain: agents.Agent[Any] = agents.Agent("p", handoffs=[agent, agents.handoff(agent)])
    result = await agents.Runner.run(agent, "hi")
    assert_type(agent_of(result.last_agent), Agent[Any] | None)
    assert_type(agent_of(plain), Agent[Any] | None)
    assert_type(agent.tools, tuple[agents.Tool, ...])
    Agent("stored", prompt={"id": "pmpt_1"})


class Support(Agent):
    """An agent with a class of its own."""


def show(context: RunContext[Report]) -> str:
    return run_result(context).final_output.title


async def use(agent: Agent[Report], text: str) -> None:
    context = await agent.run_async("hi")
    assert_type(context, RunContext[Report])
    assert_type(show(context), str)
    assert_type(show(agent.run("hi", {"k": 1})), str)
    assert_type(await resume(agent, text, {}), RunContext[Report])
    assert_type(await resume(agent, text, {}, key=[b"new", "old"], trust_unsigned=True), RunContext[Report])
    assert_type(to_json(context, key="secret"), str)
    to_json(context, key=5)  # type: ignore[arg-type]
    async with agent.stream("hi") as run:
        async for event in run:
            if event.type == "text_delta":
                assert_type(event.text, str)
    assert_type(run_result(run.context).final_output, Report)
    result = run_result(context)
    assert_type(result, RunResult[Report])
    assert_type(result.last_agent.name, str)
    assert_type(result.to_input_list(), list[agents.TResponseInputItem])
    assert_type(result.context_wrapper.usage.total_tokens, int)
    assert_type(result.raw_responses, list[agents.ModelResponse])
    assert_type([item.call_id for item in result.interruptions], list[str | None])
    for item in result.new_items:
        if item.type == "tool_call_output_item":
            assert_type(item, agents.ToolCallOutputItem)


def know_nothing(context: dict[str, Any]) -> None:
    assert_type(run_result(context), RunResult[Any])
    assert_type(run_result({}), RunResult[Any])
    run_result("context")  # type: ignore[call-overload]


def find_out(error: Exception) -> str | None:
    run = run_of(error)
    assert_type(run, Run | None)
    if run is None:
        return None
    assert_type(run.result, RunResult[Any] | None)
    return run.trace_id


async def answer_from_cache(run: Run, call_next: Next) -> None:
    cached: dict[str, RunResult[str]] = {}
    run.result = cached.get(run.id)
    await call_next(run)


async def answer_from_the_sdk(run: Run, call_next: Next) -> None:
    run.result = await agents.Runner.run(agents.Agent("a"), "x")
    await call_next(run)


class Counting(Middleware):
    async def model_call(self, call: ModelCall, call_next: ModelNext) -> agents.ModelResponse:
        answer = await call_next(call)
        assert_type(answer, agents.ModelResponse)
        return answer

    async def tool_call(self, call: ToolCall, call_next: ToolNext) -> Any:
        return await call_next(call)


class InShelves:
    """A store of the application."""

    is_persistent = True

    async def read(self, key: str) -> bytes | None:
        return None

    async def write(self, key: str, body: bytes, ttl: float) -> None: ...

    async def remove(self, key: str) -> None: ...

    async def clear(self) -> None: ...


async def ready_made(budget: Budget, call: ModelCall, call_next: ModelNext) -> None:
    assert_type(await budget.model_call(call, call_next), agents.ModelResponse)
    assert_type(budget.used().calls_without_usage, int)
    Budget(max_tokens=1, on_unknown_usage="raise")
    Budget(max_tokens=1, on_unknown_usage="ignore")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    cache = Cache("cache.sqlite3", 60, per=lambda context: context["user"]["team"])
    assert_type(cache.stats(), CacheStats)
    assert_type(cache.store, CacheStore)
    for store in (MemoryStore(), SQLiteStore("cache.sqlite3"), InShelves()):
        Cache(store, per=None)
    Cache(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    limit = LimitConcurrency(5, "user.team", of="runs", max_wait=None)
    assert_type(limit.stats(), ConcurrencyStats)
    LimitConcurrency(5, of="tools")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert_type(Hedge(1.5).stats(), HedgeStats)
    assert_type(Hedge("p99", share=0.01).after, str | float)


async def stored(store: TraceStore) -> None:
    for span in store.trace("LAST").spans:
        assert_type(span, StoredSpan)
        assert_type(span.name, str | None)
        assert_type(span.usage, dict[str, Any] | None)
    for verdict in store.failed(0.5):
        assert_type(verdict, JudgeSpan)
        assert_type(verdict.rubric, dict[str, Any])
        assert_type(verdict.trace_id, str)
    assert_type(await store.failed_async(), list[JudgeSpan])
    with store as entered:
        assert_type(entered, TraceStore)
    async with store as entered:
        assert_type(await entered.traces_async(), list[TraceSummary])


async def replays(store: TraceStore, agent: Agent[Report], replayed: Replayed) -> None:
    recording = Recording.from_trace(store, "LAST")
    assert_type(Recording.load("run.json"), Recording)
    assert_type(replay(recording, agent, ignore="tools", match=["calls"]), Replay)
    assert_type(await replay_async("run.json", agent, context={"user": 1}, traced=True, max_turns=3), Replay)
    assert_type(replayed("run.json", agent, ignore=("tools", "settings.temperature")), Replay)
    assert_type(replay(recording, agent, accept="web_search"), Replay)
    assert_type(replayed("run.json", agent, accept=["conversation_id"]), Replay)
    replay(recording, "agent")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def contexts_and_scripts_need_no_annotation(agent: Agent) -> None:
    context = {"user": "Aiko"}
    assert_type(agent.run("hi", context), RunContext[str])
    script = [ScriptedToolCall("look"), "found"]
    OfflineServer(script)


def scripts() -> None:
    # One alias for both: a list of mixed replies is inferred, in place and as a variable.
    script = [{"tool": "look", "arguments": {"city": "Oslo"}}, "found", {"city": "Oslo"}]
    for player in (OfflineServer(script), ScriptedModel(script)):
        assert_type(player, OfflineServer | ScriptedModel)
    ScriptedModel(
        ["hi", ["Let me see.", ScriptedToolCall("look")], ConnectionError("gone"), Reply(status=401)]
    )
    OfflineServer(["hi", ["Let me see.", function_call("look", {}, call_id="1")], ConnectionError("gone")])
    # The parameter of a function is the call.
    OfflineServer(lambda request: request.model)
    ScriptedModel(lambda call: call.system_instructions or "none")
    OfflineServer([lambda request: {"path": request.path}])
    annotated: list[ReplyLike] = [
        "hi",
        {"city": "Oslo"},
        ScriptedToolCall("look"),
        ["hi", ScriptedToolCall("look")],
    ]
    ScriptedModel(annotated)

    async def later(call: RecordedCall) -> ReplyLike:
        return {"tool": "look"} if call.streamed else "hi"

    ScriptedModel(later)
    played: Script[RecordedRequest] = ["hi"]
    OfflineServer(played)


def strategies_and_expectations() -> None:
    def pay(amount: int) -> str:
        return str(amount)

    rules = {"allow": ["pay"]}
    assert_type(tool_calls(rules), SearchStrategy[tuple[str, dict[str, Any]]])
    assert_type(tool_calls(tools=[pay], invalid=0), SearchStrategy[tuple[str, dict[str, Any]]])
    assert_type(
        tool_calls(rules, tools={"pay": {"type": "object"}}, malformed=True),
        SearchStrategy[tuple[str, dict[str, Any] | str]],
    )
    assert_type(tool_rules(tools=[pay]), SearchStrategy[dict[str, Any]])

    @expect_events("tool ran", min_examples=20)
    def decorated(number: int) -> str:
        event("called")
        return str(number)

    assert_type(decorated(3), str)
    with expect_events("called") as expected:
        assert_type(expected, expect_events)
