"""A change that a model does not notice leaves every kind of run as it was."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import agents
import attrs
import httpx
import openai
import pytest

from kantan_agents import Agent, AgentDefinition, Middleware, Prompt, SlashCommands, ToolRetrieval, task_tool
from kantan_agents.middleware import Approve, Approved, Redact, Rejected, Retry
from kantan_agents.testing import ScriptedModel, ScriptedToolCall
from tests.lab.replay.cohorts import Recorder, recording

Call = ScriptedToolCall


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Recorder]:
    with recording(tmp_path / "traces.db") as recorder:
        yield recorder


@attrs.define
class Verdict:
    """An output type."""

    n: int
    s: str


@attrs.frozen
class Case:
    """A kind of run: how to make the agent, the script of its model, and the arguments of the run."""

    make: Callable[[Recorder, ScriptedModel], Agent[Any]]
    script: list[Any]
    given: Any = "q"
    context: dict[str, Any] = attrs.field(factory=dict)
    options: dict[str, Any] = attrs.field(factory=dict)


CASES: dict[str, Case] = {}


def case(*script: Any, **more: Any) -> Callable[[Any], Any]:
    def add(make: Any) -> Any:
        CASES[make.__name__] = Case(make, list(script), **more)
        return make

    return add


@case("Yes")
def plain(_db: Recorder, model: ScriptedModel) -> Agent[Any]:
    return Agent("a", "Hi", model=model)


@case("ok", given=[{"role": "user", "content": "a"}, {"role": "user", "content": "c"}])
def items(_db: Recorder, model: ScriptedModel) -> Agent[Any]:
    return Agent("a", "Hi", model=model)


@case([Call("t1", {"x": "q"}), Call("t2", {"x": "r"}), Call("t1", {"x": "s"})], "Yes")
def parallel(db: Recorder, model: ScriptedModel) -> Agent[Any]:
    return Agent("a", "Hi", model=model, tools=[db.tool("t1"), db.tool("t2")])


@case(Call("t1", {"x": "q"}), Call("t1", {"x": "q"}), "Yes")
def repeated_call(db: Recorder, model: ScriptedModel) -> Agent[Any]:
    return Agent("a", "Hi", model=model, tools=[db.tool("t1")])


@case(Call("broken", {"x": "q"}), "Yes")
def failing_tool(db: Recorder, model: ScriptedModel) -> Agent[Any]:
    def broken(x: str) -> str:
        """Fail."""
        db.ran.append("broken")
        raise RuntimeError(x)

    return Agent("a", "Hi", model=model, tools=[broken])


@case('{"n":1,"s":"x"}')
def structured(_db: Recorder, model: ScriptedModel) -> Agent[Any]:
    return Agent("a", "Hi", model=model, output_type=Verdict)


@case('{"n":"zz"}', '{"n":1,"s":"x"}')
def structured_repaired(_db: Recorder, model: ScriptedModel) -> Agent[Any]:
    return Agent("a", "Hi", model=model, output_type=Verdict)


@case(Call("final_answer", {"n": 1, "s": "x"}), '{"n":1,"s":"x"}')
def structured_by_tool(_db: Recorder, model: ScriptedModel) -> Agent[Any]:
    return Agent("a", "Hi", model=model, output_type=Verdict, output_mode="tool")


@case(Call("transfer_to_b", {}), Call("tb", {"x": "1"}), "from b")
def handoff(db: Recorder, model: ScriptedModel) -> Agent[Any]:
    return Agent("a", "Hi", model=model, handoffs=[Agent("b", "I am b", model=model, tools=[db.tool("tb")])])


@case(Call("b", {"input": "x"}), Call("tb", {"x": "z"}), "from b", "done")
def agent_as_tool(db: Recorder, model: ScriptedModel) -> Agent[Any]:
    return Agent("a", "Hi", model=model, tools=[Agent("b", "I am b", model=model, tools=[db.tool("tb")])])


@case(Call("b", {"input": "x"}), Call("tb", {"x": "z"}), "from b", "done")
def sdk_agent_as_tool(db: Recorder, model: ScriptedModel) -> Agent[Any]:
    inner = agents.Agent("b", instructions="I am b", model=model, tools=[agents.function_tool(db.tool("tb"))])
    return Agent("a", "Hi", model=model, tools=[inner.as_tool("b", "Ask b.")])


@case(Call("m", {"input": "x"}), Call("transfer_to_b", {}), "from b", "done")
def handoff_inside_a_tool(_db: Recorder, model: ScriptedModel) -> Agent[Any]:
    middle = Agent("m", "I am m", model=model, handoffs=[Agent("b", "I am b", model=model)])
    return Agent("a", "Hi", model=model, tools=[middle])


@case(
    Call("Task", {"description": "d", "prompt": "p", "subagent_type": "helper"}),
    Call("tb", {"x": "1"}),
    "child",
    "parent",
    context={"user": "Aiko"},
)
def delegation(db: Recorder, model: ScriptedModel) -> Agent[Any]:
    helper = AgentDefinition(
        name="helper", description="helps", system_prompt="You help {{ $ctx.user }}.", tools=("tb",)
    )
    return Agent("a", "Hi", model=model, tools=[db.tool("tb"), task_tool([helper])])


@case(Call("ask", {"x": "z"}), "inner", "out")
def run_inside_a_tool(db: Recorder, model: ScriptedModel) -> Agent[Any]:
    inner = Agent("inner", "In", model=model)

    async def ask(x: str) -> str:
        """Ask another agent."""
        db.ran.append("ask")
        context: Any = await inner.run_async(x)
        return str(context["result"].final_output)

    return Agent("a", "Hi", model=model, tools=[ask])


@case(Call("rm", {"x": "q"}), "Yes", context={"tool_rules": {"params": {"rm": {"x": {"maxLength": 0}}}}})
def refused(db: Recorder, model: ScriptedModel) -> Agent[Any]:
    return Agent("a", "Hi", model=model, tools=[db.tool("rm")])


@case(Call("unknown", {}), "Yes")
def unknown_tool(db: Recorder, model: ScriptedModel) -> Agent[Any]:
    return Agent("a", "Hi", model=model, tools=[db.tool("rm")])


@case(Call("set_user", {}), "Yes", context={"user": {"name": "Old"}})
def changing_context(_db: Recorder, model: ScriptedModel) -> Agent[Any]:
    def set_user(ctx: agents.RunContextWrapper[dict[str, Any]]) -> str:
        """Change the context."""
        ctx.context["user"] = {"name": "New"}
        return "ok"

    return Agent("a", Prompt("p", "1", "Hi {{ $ctx.user.name }}"), model=model, tools=[set_user])


@case(RuntimeError("down"))
def failing_model(_db: Recorder, model: ScriptedModel) -> Agent[Any]:
    return Agent("a", "Hi", model=model)


@case(
    openai.RateLimitError(
        "slow", response=httpx.Response(429, request=httpx.Request("POST", "http://x/")), body=None
    ),
    "Yes",
)
def retried(_db: Recorder, model: ScriptedModel) -> Agent[Any]:
    return Agent("a", "Hi", model=model, middleware=[Retry(2, initial_delay=0.0)])


@case(Call("t1", {"x": "me@example.com"}), "ok me@example.com", given="mail me@example.com")
def redacted(db: Recorder, model: ScriptedModel) -> Agent[Any]:
    return Agent("a", "Hi", model=model, tools=[db.tool("t1")], middleware=[Redact()])


@case(Call("find_tools", {"query": "t7"}), Call("t7", {"x": "1"}), "ok", given="use t1")
def retrieval(db: Recorder, model: ScriptedModel) -> Agent[Any]:
    tools = [db.tool(f"t{number}") for number in range(12)]
    return Agent("a", "Hi", model=model, tools=tools, tool_retrieval=ToolRetrieval(3))


@case(given="/t1 --x hello")
def slash_command(db: Recorder, model: ScriptedModel) -> Agent[Any]:
    commands = SlashCommands({"allow": ["t1"]})
    return Agent("a", "Hi", model=model, tools=[db.tool("t1")], middleware=[commands])


@case(Call("t1", {}), Call("t1", {}), options={"max_turns": 2})
def too_many_turns(db: Recorder, model: ScriptedModel) -> Agent[Any]:
    return Agent("a", "Hi", model=model, tools=[db.tool("t1")])


@case([Call("pay", {"x": "1"}), Call("pay", {"x": "2"})], "done")
def approved_and_rejected(db: Recorder, model: ScriptedModel) -> Agent[Any]:
    async def decide(call: Any) -> Any:
        db.ran.append("asked")
        return Rejected("no") if "2" in call.arguments else Approved()

    return Agent("a", "Hi", model=model, tools=[db.tool("pay")], middleware=[Approve("pay", decide)])


@case(Call("broken", {}), "Yes")
def caught_error(_db: Recorder, model: ScriptedModel) -> Agent[Any]:
    class Catch(Middleware):
        async def tool_call(self, call: Any, call_next: Any) -> Any:
            try:
                return await call_next(call)
            except RuntimeError as error:
                return f"caught {error}"

    def broken() -> str:
        """Fail."""
        raise RuntimeError("broken")

    return Agent("a", "Hi", model=model, tools=[broken], middleware=[Catch()])


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("name", CASES)
def test_a_change_that_the_model_does_not_notice_gives_the_same_run(
    db: Recorder, name: str, streamed: bool
) -> None:
    kind = CASES[name]
    trace_id = db.run(
        kind.make(db, ScriptedModel(kind.script)),
        kind.given,
        dict(kind.context),
        streamed=streamed,
        **kind.options,
    )
    db.ran.clear()
    # The run inside the tool is not made again, so its answer is not in the script.
    script = [one for one in kind.script if one != "inner"]
    experiment = db.replay([trace_id], kind.make(db, ScriptedModel(script)))
    (run,) = experiment.runs
    assert (run.status, run.decisions, run.new_call) == ("same", (), None), run.error
    assert not db.ran
    assert run.output_after == run.output_before
    assert (run.before.model_calls, run.before.tokens) == (run.after.model_calls, run.after.tokens)
    assert experiment.coverage == 1


def test_a_session_is_filled_with_what_it_had(db: Recorder) -> None:
    session = agents.SQLiteSession("s")
    asyncio.run(session.add_items([{"role": "user", "content": "old"}]))
    trace_id = db.run(Agent("a", "Hi", model=ScriptedModel(["Yes"])), session=session)
    again = ScriptedModel(["Yes"])
    assert db.replay([trace_id], Agent("a", "Hi", model=again)).counts["same"] == 1
    assert len(asyncio.run(session.get_items())) == 3
    assert "old" in str(again.calls[0].input)
    session.close()
