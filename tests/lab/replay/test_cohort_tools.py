"""No tool runs in a cohort because somebody forgot an option, whatever the model asks for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import agents
import pytest
from agents import handoff
from agents.mcp import MCPServerStdio
from openai.types.responses import ResponseApplyPatchToolCall, ResponseFunctionShellToolCall

from kantan_agents import Agent, AgentDefinition, Middleware, SlashCommands, task_tool
from kantan_agents.errors import EmptyCohortError, InvalidOptionError, UnknownRecordedToolError
from kantan_agents.lab import Change, Cohort, replay_cohort_async
from kantan_agents.middleware import Approve, Approved, Rejected
from kantan_agents.testing import ScriptedModel, ScriptedToolCall
from tests.lab.replay.cohorts import HARMLESS, Recorder, recording
from tests.mcp_servers import RealServers

Call = ScriptedToolCall


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Recorder]:
    with recording(tmp_path / "traces.db") as recorder:
        yield recorder


def one_tool(db: Recorder, **options: Any) -> Callable[[ScriptedModel], Agent[Any]]:
    return lambda model: Agent("a", "Hi", model=model, tools=[db.tool("t1")], **options)


class Catch(Middleware):
    """Hides the errors of tools and models, as a user's code may."""

    async def tool_call(self, call: Any, call_next: Any) -> Any:
        try:
            return await call_next(call)
        except Exception:  # noqa: BLE001 - that is what it is for
            return "caught"

    async def model_call(self, call: Any, call_next: Any) -> Any:
        try:
            return await call_next(call)
        except Exception:  # noqa: BLE001 - that is what it is for
            return await call_next(call)


def diverged_at(run: Any) -> tuple[str, str, str]:
    assert run.status == "diverged", (run.status, run.decisions, run.error)
    return (run.new_call.agent, run.new_call.tool, run.new_call.arguments)


@pytest.mark.parametrize(
    "options",
    [{}, {"middleware": [Catch()]}, {"tool_use_behavior": "stop_on_first_tool"}],
    ids=["plain", "errors are caught", "stops at the first tool"],
)
def test_a_call_with_other_arguments_ends_the_run(db: Recorder, options: dict[str, Any]) -> None:
    run = db.again(
        one_tool(db, **options), [Call("t1", {"x": "1"}), "done"], [Call("t1", {"x": "2"}), "a", "b", "c"]
    )
    assert diverged_at(run) == ("a", "t1", '{"x": "2"}')
    assert run.new_call is not None
    assert run.new_call.step == 1
    assert run.after.model_calls == 1  # no request is sent after it
    assert not db.ran


def test_equal_calls_are_answered_in_any_order_and_again(db: Recorder) -> None:
    def make(model: ScriptedModel) -> Agent[Any]:
        return Agent("a", "Hi", model=model, tools=[db.tool("t1"), db.tool("t2")])

    def script(*names: str) -> list[Any]:
        return [*(Call(name, {"x": "1"}) for name in names), "done"]

    run = db.again(make, script("t1", "t2"), script("t2", "t1"))
    assert (run.status, db.ran) == ("same", [])
    more = db.again(make, script("t1", "t2"), script("t2", "t1", "t1"))
    assert (more.status, db.ran) == ("changed", [])
    (decision,) = more.decisions
    assert (decision.kind, decision.name, decision.before, decision.after) == (
        "tool call",
        "t1",
        None,
        '{"x":"1"}',
    )


def test_the_order_of_keys_in_arguments_does_not_count(db: Recorder) -> None:
    def make(model: ScriptedModel) -> Agent[Any]:
        def pair(a: int, b: int) -> str:
            """Do it."""
            db.ran.append("pair")
            return f"{a}{b}"

        return Agent("a", "Hi", model=model, tools=[pair])

    run = db.again(make, [Call("pair", {"a": 1, "b": 2}), "x"], [Call("pair", {"b": 2, "a": 1}), "x"])
    assert (run.status, db.ran) == ("same", [])


def test_repeated_equal_calls_get_their_results_in_order(db: Recorder) -> None:
    count = iter(range(100))

    def make(model: ScriptedModel) -> Agent[Any]:
        def number() -> str:
            """Count."""
            return f"number {next(count)}"

        return Agent("a", "Hi", model=model, tools=[number])

    def script(times: int) -> ScriptedModel:
        return ScriptedModel([*(Call("number", {}) for _ in range(times)), "done"])

    again = script(3)
    trace_id = db.run(make(script(2)))
    db.replay([trace_id], make(again))
    outputs = [item["output"] for item in again.calls[-1].input if item.get("type") == "function_call_output"]
    assert outputs == ["number 0", "number 1", "number 1"]


def plain_agent(db: Recorder, model: ScriptedModel) -> Any:
    return agents.Agent("b", instructions="b", model=model, tools=[agents.function_tool(db.tool("tb"))])


def own_agent(db: Recorder, model: ScriptedModel) -> Agent[Any]:
    return Agent("b", "b", model=model, tools=[db.tool("tb")])


INNER: dict[str, tuple[Callable[[Recorder, ScriptedModel], Agent[Any]], Any]] = {
    "tool of the SDK's agent": (
        lambda db, model: Agent("a", "Hi", model=model, tools=[plain_agent(db, model).as_tool("b", "b")]),
        Call("b", {"input": "x"}),
    ),
    "hand-off to the SDK's agent": (
        lambda db, model: Agent("a", "Hi", model=model, handoffs=[plain_agent(db, model)]),
        Call("transfer_to_b", {}),
    ),
    "agent as a tool": (
        lambda db, model: Agent("a", "Hi", model=model, tools=[own_agent(db, model)]),
        Call("b", {"input": "x"}),
    ),
    "hand-off": (
        lambda db, model: Agent("a", "Hi", model=model, handoffs=[own_agent(db, model)]),
        Call("transfer_to_b", {}),
    ),
    "hand-off to an agent with a tool of the same name": (
        lambda db, model: Agent(
            "a", "Hi", model=model, handoffs=[own_agent(db, model)], tools=[db.tool("tb")]
        ),
        Call("transfer_to_b", {}),
    ),
    "delegation": (
        lambda db, model: Agent(
            "a",
            "Hi",
            model=model,
            tools=[
                db.tool("tb"),
                task_tool([AgentDefinition(name="b", description="b", system_prompt="b", tools=("tb",))]),
            ],
        ),
        Call("Task", {"description": "d", "prompt": "p", "subagent_type": "b"}),
    ),
}


@pytest.mark.parametrize("name", INNER)
def test_a_new_call_of_an_agent_inside_the_run_ends_it(db: Recorder, name: str) -> None:
    make, start = INNER[name]
    run = db.again(
        lambda model: make(db, model), ["done"], [start, Call("tb", {"x": "1"}), "inner", "done", "more"]
    )
    assert diverged_at(run) == ("b", "tb", '{"x": "1"}')
    assert (run.after.model_calls, db.ran) == (2, [])


def test_a_hand_off_that_only_one_run_makes_is_a_changed_decision(db: Recorder) -> None:
    def make(model: ScriptedModel) -> Agent[Any]:
        return Agent("a", "Hi", model=model, handoffs=[own_agent(db, model)])

    run = db.again(make, ["done"], [Call("transfer_to_b", {}), "done"])
    assert [(one.kind, one.agent, one.name) for one in run.decisions] == [("hand-off", "a", "b")]


def test_a_tool_that_is_named_live_runs_if_the_recording_does_not_answer(db: Recorder) -> None:
    script = [Call("t1", {"x": "2"}), "done"]
    run = db.again(one_tool(db), ["done"], script, live={"t1"})
    assert (run.status, run.live, db.ran) == ("changed", ("t1",), ["t1"])
    db.ran.clear()
    recorded = db.again(one_tool(db), script, script, live={"t1"})
    assert (recorded.status, recorded.live, db.ran) == ("same", (), [])


def test_rules_refuse_a_live_tool(db: Recorder) -> None:
    rules = {"params": {"t1": {"x": {"maxLength": 0}}}}
    run = db.again(one_tool(db), ["done"], [Call("t1", {"x": "2"}), "done"], Change.rules(rules), live={"t1"})
    assert {one.kind for one in run.decisions} == {"tool call", "denial"}
    assert (run.live, db.ran) == ((), [])


def test_a_live_tool_that_does_not_exist_is_an_error(db: Recorder) -> None:
    with pytest.raises(InvalidOptionError, match=r"no|neither.*did you mean 't1'"):
        db.again(one_tool(db), ["done"], ["done"], live={"t"})


def test_a_live_tool_that_needs_an_approval_does_not_run(db: Recorder) -> None:
    async def decide(_call: Any) -> Any:
        db.ran.append("asked")
        return Approved()

    make = one_tool(db, middleware=[Approve("t1", decide)])
    run = db.again(make, ["done"], [Call("t1", {"x": "2"}), "done"], live={"t1"})
    assert diverged_at(run) == ("a", "t1", '{"x": "2"}')
    assert not db.ran


def test_what_a_person_has_rejected_is_rejected_again(db: Recorder) -> None:
    async def decide(_call: Any) -> Any:
        db.ran.append("asked")
        return Rejected("not today")

    make = one_tool(db, middleware=[Approve("t1", decide)])
    script = [Call("t1", {"x": "2"}), "done"]
    run = db.again(make, script, script)
    assert (run.status, db.ran) == ("same", [])


def test_a_call_that_a_person_had_rejected_has_no_result(db: Recorder) -> None:
    async def decide(_call: Any) -> Any:
        return Rejected("not today")

    trace_id = db.run(one_tool(db, middleware=[Approve("t1", decide)])(ScriptedModel([Call("t1", {}), "x"])))
    experiment = db.replay([trace_id], one_tool(db)(ScriptedModel([Call("t1", {}), "x"])))
    assert diverged_at(experiment.runs[0])[1] == "t1"
    assert not db.ran


def test_a_run_that_would_wait_for_an_approval_diverges(db: Recorder) -> None:
    make = one_tool(db, middleware=[Approve("t1")])
    run = db.again(make, ["done"], [Call("t1", {"x": "2"}), "done"])
    assert diverged_at(run)[:2] == ("a", "t1")
    assert not db.ran


def test_runs_that_wait_and_runs_that_were_resumed_are_left_out(db: Recorder) -> None:
    make = one_tool(db, middleware=[Approve("t1")])

    async def both() -> None:
        agent = make(ScriptedModel([Call("t1", {"x": "2"}), "done"]))
        context: Any = await agent.run_async("q")
        state = context["result"].to_state()
        for one in context["result"].interruptions:
            state.approve(one)
        await agent.run_async(state, context)

    asyncio.run(both())
    db.recorder.force_flush()
    traces = [trace.trace_id for trace in db.store.traces()]
    with pytest.raises(EmptyCohortError, match=r"waits for an approval|resumed"):
        db.replay(traces, make(ScriptedModel([])))


def test_calls_that_were_refused_before_a_run_diverged_are_known(db: Recorder) -> None:
    def make(model: ScriptedModel) -> Agent[Any]:
        return Agent("a", "Hi", model=model, tools=[db.tool("t1"), db.tool("t2")])

    run = db.again(
        make,
        [Call("t1", {"x": "1"}), "done"],
        [Call("t2", {"x": "1"}), Call("t1", {"x": "2"}), "never"],
        context={"tool_rules": {"deny": ["t2"]}},
    )
    assert diverged_at(run) == ("a", "t1", '{"x": "2"}')
    assert [(one.kind, one.name, one.before) for one in run.decisions] == [("denial", "t2", None)]
    assert not db.ran


def test_a_call_that_the_rules_had_refused_has_no_result(db: Recorder) -> None:
    script = [Call("t1", {"x": "2"}), "done"]
    rules = {"params": {"t1": {"x": {"maxLength": 0}}}}
    run = db.again(one_tool(db), script, script, Change.rules({}), context={"tool_rules": rules})
    assert diverged_at(run) == ("a", "t1", '{"x": "2"}')
    assert not db.ran


def test_new_rules_refuse_a_recorded_call(db: Recorder) -> None:
    script = [Call("t1", {"x": "2"}), "done"]
    rules = {"params": {"t1": {"x": {"maxLength": 0}}}}
    run = db.again(one_tool(db), script, script, Change.rules(rules))
    assert [(one.kind, one.name, one.before, one.after) for one in run.decisions] == [
        ("denial", "t1", None, "E14")
    ]
    assert not db.ran


def test_an_agent_that_plays_a_tool_is_marked(db: Recorder) -> None:
    plays = ScriptedModel(["made up"])
    after = ScriptedModel([Call("t1", {"x": "2"}), "done"])
    trace_id = db.run(one_tool(db)(ScriptedModel([Call("t1", {"x": "1"}), "done"])))
    db.ran.clear()
    simulator = Agent("player", "Play the tool.", model=plays)
    run = db.replay([trace_id], one_tool(db)(after), simulate=simulator).runs[0]
    assert (run.status, run.simulated, db.ran) == ("changed", ("t1",), [])
    assert "made up" in str(after.calls[-1].input)
    question = json.loads(plays.calls[0].input[-1]["content"])
    assert (question["tool"], question["description"]) == ("t1", "Do it.")
    assert json.loads(question["arguments"]) == {"x": "2"}
    assert [one["result"] for one in question["examples"]] == ["t1:1"]


def test_an_agent_that_plays_tools_has_none_itself(db: Recorder) -> None:
    with pytest.raises(InvalidOptionError, match="simulate"):
        db.again(one_tool(db), ["done"], ["done"], simulate=one_tool(db)(ScriptedModel([])))


def test_hosted_tools_are_refused_by_name_unless_they_are_live(db: Recorder) -> None:
    def make(model: ScriptedModel) -> Agent[Any]:
        return Agent("a", "Hi", model=model, tools=[agents.WebSearchTool()])

    with pytest.raises(EmptyCohortError, match="'web_search'"):
        db.again(make, ["done"], ["done"])
    assert db.again(make, ["done"], ["done"], live={"web_search"}).status == "same"
    trace_id = db.run(Agent("a", "Hi", model=ScriptedModel(["done"])))
    again = ScriptedModel(["done"])
    run = db.replay([trace_id], make(again)).runs[0]
    assert diverged_at(run) == ("a", "web_search", "")
    assert not again.calls


def test_conversations_held_by_the_provider_are_refused_by_name(db: Recorder) -> None:
    for option in ("previous_response_id", "conversation_id"):
        options: dict[str, Any] = {option: "resp_1"}
        trace_id = db.run(Agent("a", "Hi", model=ScriptedModel(["done"])), **options)
        with pytest.raises(EmptyCohortError, match="held by the provider"):
            db.replay([trace_id], Agent("a", "Hi", model=ScriptedModel(["done"])))


def test_a_request_that_would_continue_such_a_conversation_is_not_sent(db: Recorder) -> None:
    class Continue(Middleware):
        async def model_call(self, call: Any, call_next: Any) -> Any:
            call.options["conversation_id"] = "conv_1"
            return await call_next(call)

    trace_id = db.run(Agent("a", "Hi", model=ScriptedModel(["done"])))
    again = ScriptedModel(["done"])
    run = db.replay([trace_id], Agent("a", "Hi", model=again), Change.middleware(Continue())).runs[0]
    assert run.status == "failed"
    assert "E93" in str(run.error)
    assert not again.calls


def test_shell_and_patches_do_not_run(db: Recorder) -> None:
    def run_shell(_request: Any) -> str:
        db.ran.append("shell")
        return "out"

    class Editor:
        def create_file(self, _operation: Any) -> Any:
            db.ran.append("patch")

        update_file = delete_file = create_file

    def make(model: ScriptedModel) -> Agent[Any]:
        tools = [agents.ShellTool(executor=run_shell), agents.ApplyPatchTool(editor=Editor())]
        return Agent("a", "Hi", model=model, tools=tools)

    shell = ResponseFunctionShellToolCall.model_validate(
        {
            "id": "sh_1",
            "call_id": "call_1",
            "type": "shell_call",
            "status": "completed",
            "action": {"commands": ["rm -rf x"], "max_output_length": None, "timeout_ms": None},
        }
    )
    patch = ResponseApplyPatchToolCall.model_validate(
        {
            "id": "ap_1",
            "call_id": "call_2",
            "type": "apply_patch_call",
            "status": "completed",
            "operation": {"type": "create_file", "path": "x", "diff": "+x"},
        }
    )
    for call, name in ((shell, "shell"), (patch, "apply_patch")):
        run = db.again(make, ["done"], [[call], "done", "done"])
        assert diverged_at(run)[:2] == ("a", name)
    assert not db.ran


def with_computer(db: Recorder, model: ScriptedModel) -> Agent[Any]:
    def start(*, run_context: Any) -> Any:
        del run_context
        db.ran.append("computer")
        raise RuntimeError

    return Agent("b", "b", model=model, tools=[agents.ComputerTool(start)])


def only_known_later(agent: Agent[Any]) -> Any:
    """Return a hand-off to an agent that nobody can find in it."""

    async def invoke(_context: Any, _arguments: str) -> Any:
        return agent.sdk_agent

    return agents.Handoff(
        tool_name="transfer_to_b",
        tool_description="b",
        input_json_schema={},
        on_invoke_handoff=invoke,
        agent_name="b",
    )


@pytest.mark.parametrize("place", ["hand-off", "object", "tool", "SDK's tool"])
def test_a_computer_is_not_even_started(db: Recorder, place: str) -> None:
    def make(model: ScriptedModel) -> Agent[Any]:
        other = with_computer(db, model)
        if place in ("hand-off", "object"):
            return Agent("a", "Hi", model=model, handoffs=[other if place == "hand-off" else handoff(other)])
        tool = other if place == "tool" else other.sdk_agent.as_tool("b", "b")
        return Agent("a", "Hi", model=model, tools=[tool])

    call = Call("transfer_to_b", {}) if place in ("hand-off", "object") else Call("b", {"input": "x"})
    with pytest.raises(InvalidOptionError, match="starts a computer"):
        db.again(make, ["done"], [call, "done", "done"])
    assert not db.ran


def test_a_computer_of_an_agent_that_only_the_handoff_knows_is_not_started(db: Recorder) -> None:
    def make(model: ScriptedModel) -> Agent[Any]:
        return Agent("a", "Hi", model=model, handoffs=[only_known_later(with_computer(db, model))])

    run = db.again(make, ["done"], [Call("transfer_to_b", {}), "done", "done"])
    assert diverged_at(run)[:2] == ("b", "computer_use_preview")
    assert not db.ran


def test_a_runner_of_its_own_is_refused(db: Recorder) -> None:
    class Other(agents.Runner):
        pass

    with pytest.raises(InvalidOptionError, match="runner"):
        db.again(lambda model: Agent("a", "Hi", model=model, runner=Other), ["done"], ["done"])


def test_a_slash_command_is_answered_from_the_recording(db: Recorder) -> None:
    def make(_model: ScriptedModel) -> Agent[Any]:
        commands = SlashCommands({"allow": ["t1"]})
        return Agent("a", "Hi", model=ScriptedModel([]), tools=[db.tool("t1")], middleware=[commands])

    trace_id = db.run(make(ScriptedModel([])), "/t1 --x hello")
    assert db.ran == ["t1"]
    run = db.replay([trace_id], make(ScriptedModel([]))).runs[0]
    assert (run.status, run.output_after, db.ran) == ("same", run.output_before, ["t1"])


def test_an_mcp_server_is_neither_listed_nor_called(
    db: Recorder, real_servers: RealServers, tmp_path: Path
) -> None:
    (tmp_path / "x.txt").write_text("content")
    path = str(tmp_path / "x.txt")

    def make(model: ScriptedModel, server: Any) -> Agent[Any]:
        return Agent("a", "Hi", model=model, mcp_servers=[server])

    async def record() -> None:
        async with MCPServerStdio(
            real_servers.filesystem(tmp_path), name="files", client_session_timeout_seconds=60
        ) as server:
            with suppress(RuntimeError):
                script = [Call("read_text_file", {"path": path}), "done"]
                await make(ScriptedModel(script), server).run_async("q")

    asyncio.run(record())
    away = MCPServerStdio({"command": "false"}, name="files")
    trace_id = db.newest()
    same = db.replay([trace_id], make(ScriptedModel([Call("read_text_file", {"path": path}), "done"]), away))
    assert same.counts["same"] == 1, same.runs
    write = Call("write_file", {"path": path, "content": "gone"})
    other = db.replay([trace_id], make(ScriptedModel([write, "x"]), away), name="other")
    assert diverged_at(other.runs[0])[:2] == ("a", "write_file")
    assert (tmp_path / "x.txt").read_text() == "content"
    new = MCPServerStdio({"command": "false"}, name="new")
    with pytest.raises(UnknownRecordedToolError, match="read_text_file"):
        db.replay([trace_id], make(ScriptedModel([]), new))


def test_an_mcp_server_is_not_asked_for_a_prompt(db: Recorder, real_servers: RealServers) -> None:
    asked: list[str] = []

    class Noting(MCPServerStdio):
        async def list_prompts(self) -> Any:
            asked.append("list")
            return await super().list_prompts()

        async def get_prompt(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
            asked.append(name)
            return await super().get_prompt(name, arguments)

    async def both() -> Any:
        async with Noting(real_servers.everything(), name="every") as server:
            agent = Agent(
                "a",
                "Hi",
                model=ScriptedModel(["done", "done"]),
                mcp_servers=[server],
                middleware=[SlashCommands({"allow": ["*"]})],
            )
            await agent.run_async("/mcp__every__simple-prompt")
            assert asked == ["list", "simple-prompt"]
            trace_id = await asyncio.to_thread(db.newest)
            return await replay_cohort_async(Cohort.of(db.store, [trace_id]), agent, HARMLESS)

    experiment = asyncio.run(both())
    assert asked == ["list", "simple-prompt"]
    assert experiment.counts["same"] == 1  # its input is recorded as the messages of the prompt


def test_an_agent_that_lacks_a_recorded_tool_is_an_error_before_the_start(db: Recorder) -> None:
    trace_id = db.run(one_tool(db)(ScriptedModel([Call("t1", {}), "done"])))
    again = ScriptedModel(["done"])
    with pytest.raises(UnknownRecordedToolError, match="'t1'"):
        db.replay([trace_id], Agent("a", "Hi", model=again), HARMLESS)
    assert not again.calls
