"""Middleware around tool calls: replacing, answering and repeating them, and the emitted events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import agents
import attrs
import pytest
from agents import ApplyPatchTool, ComputerTool, CustomTool, LocalShellTool, ShellTool, function_tool
from agents.editor import ApplyPatchResult
from openai.types.responses import ResponseComputerToolCall, ResponseCustomToolCall
from openai.types.responses.response_output_item import LocalShellCall, LocalShellCallAction

from kantan_agents import Agent, Event, Middleware
from kantan_agents.core.events import ToolCallDenied, ToolCallFinished, ToolCallStarted
from kantan_agents.errors import MiddlewareResultError, ToolNotAllowedError, ToolParameterMaxLengthError
from kantan_agents.testing import ScriptedModel, assistant_message, function_call, scripted
from tests.core.events.event_checks import check_whole
from tests.core.interception.test_middleware import finish, greet

both = pytest.mark.parametrize("streamed", [False, True])


class Around(Middleware):
    """A middleware with a function as its only level."""

    def __init__(self, wrap: Callable[[Any, Any], Any]) -> None:
        self.wrap = wrap

    async def tool_call(self, call: Any, call_next: Any) -> Any:
        return await self.wrap(call, call_next)


async def pass_on(call: Any, call_next: Any) -> Any:
    return await call_next(call)


def calling(*calls: Any, ids: str = "c") -> ScriptedModel:
    items = [
        call if not isinstance(call, tuple) else function_call(*call, call_id=f"{ids}{n}")
        for n, call in enumerate(calls)
    ]
    return ScriptedModel([items, [assistant_message("done")]])


def outputs_sent_to(model: ScriptedModel) -> list[str]:
    assert model.last_call is not None
    return [
        str(item["output"]) for item in model.last_call.input if str(item.get("type")).endswith("_output")
    ]


async def events_of(agent: Agent, *, streamed: bool = False, **options: Any) -> list[Event]:
    received: list[Event] = []
    with agent.subscribe(received.append):
        try:
            await finish(agent, streamed=streamed, **options)
        finally:
            check_whole(received)
    return received


def of_tools(received: list[Event]) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for event in received:
        if isinstance(event, ToolCallStarted):
            found.append(("started", event.tool, event.call_id, event.arguments))
        elif isinstance(event, ToolCallFinished):
            found.append((event.outcome, event.tool, event.call_id, event.output))
        elif isinstance(event, ToolCallDenied):
            found.append((event.code, event.tool, event.call_id))
    return found


# --- function tools -----------------------------------------------------------------------------------


@both
async def test_the_tool_receives_replaced_arguments(streamed: bool) -> None:
    async def replace(call: Any, call_next: Any) -> Any:
        assert (call.name, call.agent, call.call_id) == ("greet", "a", "c0")
        assert call.tool.name == "greet"
        call.arguments = call.arguments.replace("Bo", "Eve")
        return await call_next(call)

    model = calling(("greet", {"name": "Bo"}))
    received = await events_of(
        Agent("a", "x", model=model, tools=[greet], middleware=[Around(replace)]), streamed=streamed
    )
    assert outputs_sent_to(model) == ["Hello Eve."]
    started, finished = of_tools(received)
    assert (started[:3], json.loads(started[3])) == (("started", "greet", "c0"), {"name": "Bo"})
    assert finished == ("finished", "greet", "c0", "Hello Eve.")


@both
@pytest.mark.parametrize(("written", "replaced", "ok"), [("Bo", "Mallory", False), ("Mallory", "Bo", True)])
async def test_the_rules_check_the_replaced_arguments(
    streamed: bool, written: str, replaced: str, ok: bool
) -> None:
    async def replace(call: Any, call_next: Any) -> Any:
        call.arguments = json.dumps({"name": replaced})
        return await call_next(call)

    model = calling(("greet", {"name": written}))
    agent = Agent("a", "x", model=model, tools=[greet], middleware=[Around(replace)])
    rules = {"params": {"greet": {"name": {"maxLength": 3}}}}
    received = await events_of(agent, streamed=streamed, context={"tool_rules": rules})
    assert ("Hello Bo." in outputs_sent_to(model)[0]) is ok
    assert of_tools(received)[-1][0] == ("finished" if ok else "E14")


@both
async def test_a_result_can_be_computed_and_replaced(streamed: bool) -> None:
    async def compute(call: Any, call_next: Any) -> Any:
        if call.call_id == "c0":
            return "computed"
        return f"{await call_next(call)} Goodbye."

    model = calling(("greet", {"name": "Bo"}), ("greet", {"name": "Eve"}))
    await events_of(
        Agent("a", "x", model=model, tools=[greet], middleware=[Around(compute)]), streamed=streamed
    )
    assert outputs_sent_to(model) == ["computed", "Hello Eve. Goodbye."]


@both
async def test_a_refused_call_may_be_tried_again_with_other_arguments(streamed: bool) -> None:
    seen: list[Any] = []

    async def correct(call: Any, call_next: Any) -> Any:
        text = await call_next(call)
        seen.append(type(call.refusal))
        if call.refusal is not None:
            call.arguments = json.dumps({"name": "Bo"})
            text = await call_next(call)
            seen.append(type(call.refusal))
        return text

    model = calling(("greet", {"name": "Mallory"}))
    agent = Agent("a", "x", model=model, tools=[greet], middleware=[Around(correct)])
    rules = {"params": {"greet": {"name": {"maxLength": 3}}}}
    received = await events_of(agent, streamed=streamed, context={"tool_rules": rules})
    assert outputs_sent_to(model) == ["Hello Bo."]
    assert seen == [ToolParameterMaxLengthError, type(None)]
    assert of_tools(received)[-1] == ("finished", "greet", "c0", "Hello Bo.")


async def test_a_copy_of_the_call_carries_the_refusal_too() -> None:
    seen: list[Any] = []

    async def copy(call: Any, call_next: Any) -> Any:
        copied = attrs.evolve(call)
        text = await call_next(copied)
        seen.append((type(copied.refusal), type(call.refusal)))
        return text

    model = calling(("greet", {"name": "Mallory"}))
    agent = Agent("a", "x", model=model, tools=[greet], middleware=[Around(copy)])
    rules = {"params": {"greet": {"name": {"maxLength": 3}}}}
    received = await events_of(agent, context={"tool_rules": rules})
    assert seen == [(ToolParameterMaxLengthError, ToolParameterMaxLengthError)]
    assert of_tools(received)[-1] == ("E14", "greet", "c0")


@both
@pytest.mark.parametrize("nested", [False, True])
async def test_an_error_of_a_middleware_ends_the_run_unchanged(streamed: bool, nested: bool) -> None:
    raised = LookupError("mine")

    async def fail(call: Any, call_next: Any) -> Any:
        if call.name == "greet":
            raise raised
        return await call_next(call)

    model = calling(("greet", {"name": "Bo"}), ids="b")
    tools: list[Any] = [greet]
    if nested:
        helper: Any = agents.Agent(name="b", model=model, tools=[function_tool(greet)])
        model, tools = calling(("ask", {"input": "x"})), [helper.as_tool("ask", "d")]
    agent = Agent("a", "x", model=model, tools=tools, middleware=[Around(fail)])
    with pytest.raises(LookupError) as caught:
        await events_of(agent, streamed=streamed)
    assert caught.value is raised
    assert caught.value.kantan_run.agent is agent  # type: ignore[attr-defined]


@both
async def test_an_error_that_an_outer_middleware_handles_does_not_end_the_run(streamed: bool) -> None:
    async def fail(call: Any, call_next: Any) -> Any:
        raise LookupError

    async def handle(call: Any, call_next: Any) -> Any:
        try:
            return await call_next(call)
        except LookupError:
            return "handled"

    model = calling(("greet", {"name": "Bo"}))
    agent = Agent("a", "x", model=model, tools=[greet], middleware=[Around(handle), Around(fail)])
    await events_of(agent, streamed=streamed)
    assert outputs_sent_to(model) == ["handled"]


@both
@pytest.mark.parametrize("wrong", [None, "call", 5])
async def test_passing_on_something_other_than_a_call_is_e80(streamed: bool, wrong: Any) -> None:
    async def send(call: Any, call_next: Any) -> Any:
        return await call_next(wrong)

    agent = Agent(
        "a", "x", model=calling(("greet", {"name": "Bo"})), tools=[greet], middleware=[Around(send)]
    )
    with pytest.raises(MiddlewareResultError, match=r"\[E80\].*ToolCall"):
        await events_of(agent, streamed=streamed)


@both
@pytest.mark.parametrize("wrapped", [False, True])
async def test_a_failing_tool_has_the_same_result_with_and_without_middleware(
    streamed: bool, wrapped: bool
) -> None:
    def fails() -> str:
        raise LookupError("no such thing")

    middleware = [Around(pass_on)] if wrapped else []
    model = calling(("fails", {}))
    received = await events_of(
        Agent("a", "x", model=model, tools=[fails], middleware=middleware), streamed=streamed
    )
    plain = calling(("fails", {}))
    by_the_sdk: Any = agents.Agent(name="a", model=plain, tools=[function_tool(fails)])
    await agents.Runner.run(by_the_sdk, "hi")
    assert outputs_sent_to(model) == outputs_sent_to(plain)
    assert of_tools(received)[-1][0] == "finished"
    hard = function_tool(fails, failure_error_function=None)
    with pytest.raises(agents.UserError) as caught:
        await events_of(
            Agent("a", "x", model=calling(("fails", {})), tools=[hard], middleware=middleware),
            streamed=streamed,
        )
    assert isinstance(caught.value.__cause__, LookupError)


@both
async def test_a_refusal_inside_a_tool_is_not_a_refusal_of_the_tool(streamed: bool) -> None:
    inner_model = calling(("greet", {"name": "Mallory"}), ("nobody", {}))
    inner = Agent("inner", "x", model=inner_model, tools=[greet])
    helper: Any = agents.Agent(
        name="b", model=calling(("greet", {"name": "Mallory"}), ids="b"), tools=[function_tool(greet)]
    )
    rules = {"params": {"greet": {"name": {"maxLength": 3}}}}

    async def nested() -> str:
        return str((await inner.run_async("x", {"tool_rules": rules}))["result"].final_output)

    model = calling(("nested", {}), ("ask", {"input": "x"}))
    agent = Agent("a", "x", model=model, tools=[nested, helper.as_tool("ask", "d")])
    received = await events_of(agent, streamed=streamed, context={"tool_rules": rules})
    ends = {event[1:3]: event[0] for event in of_tools(received) if event[0] != "started"}
    assert ends[("nested", "c0")] == "finished"
    assert ends[("ask", "c1")] == "finished"
    assert sorted(
        event[0] for event in of_tools(received) if event[1] in ("greet", "nobody") and event[0][0] == "E"
    ) == [
        "E14",
        "E14",
        "E21",
    ]


@both
async def test_a_tool_that_times_out_ends_once(streamed: bool) -> None:
    async def slow() -> str:
        await asyncio.Event().wait()
        return ""

    model = calling(("slow", {}))
    received = await events_of(
        Agent("a", "x", model=model, tools=[function_tool(slow, timeout=0.001)]), streamed=streamed
    )
    assert [event[0] for event in of_tools(received)] == ["started", "cancelled"]
    assert "timed out" in outputs_sent_to(model)[0]


# --- calls of missing tools ---------------------------------------------------------------------------


@both
async def test_calls_of_hidden_and_unknown_tools_are_emitted_as_refused(streamed: bool) -> None:
    model = calling(("greet", {"name": "Bo"}), ("nobody", {"x": 1}))
    agent = Agent("a", "x", model=model, tools=[greet])
    received = await events_of(agent, streamed=streamed, context={"tool_rules": {"deny": ["greet"]}})
    assert sorted(of_tools(received)) == [
        ("E21", "nobody", "c1"),
        ("E8", "greet", "c0"),
        ("started", "greet", "c0", ""),
        ("started", "nobody", "c1", ""),
    ]
    (refused,) = [event for event in received if isinstance(event, ToolCallDenied) and event.code == "E8"]
    assert refused.message in outputs_sent_to(model)[0]


@both
async def test_calls_of_hidden_and_unknown_tools_of_a_hand_off_target_are_emitted_as_refused(
    streamed: bool,
) -> None:
    target: Any = agents.Agent(
        name="b", model=calling(("greet", {"name": "Bo"})), tools=[function_tool(greet)]
    )
    hand_over = ScriptedModel([[function_call("transfer_to_b", {}, call_id="h")]])
    agent = Agent("a", "x", model=hand_over, handoffs=[target])
    received = await events_of(agent, streamed=streamed, context={"tool_rules": {"deny": ["greet"]}})
    assert [event.agent for event in received if isinstance(event, (ToolCallStarted, ToolCallDenied))] == [
        "b",
        "b",
    ]


@both
async def test_a_refusal_that_is_raised_is_emitted_before_the_run_fails(streamed: bool) -> None:
    agent = Agent(
        "a", "x", model=calling(("greet", {"name": "Bo"})), tools=[greet], on_rule_violation="raise"
    )
    received: list[Event] = []
    with agent.subscribe(received.append), pytest.raises(ToolNotAllowedError):
        await finish(agent, streamed=streamed, context={"tool_rules": {"deny": ["greet"]}})
    check_whole(received)
    assert of_tools(received) == [("started", "greet", "c0", ""), ("E8", "greet", "c0")]
    assert received[-1].to_dict()["code"] == "E8"


# --- tools of other kinds -----------------------------------------------------------------------------


def local_shell_call() -> Any:
    action = LocalShellCallAction(command=["git", "push"], env={}, type="exec")
    return LocalShellCall(id="i", call_id="c0", action=action, status="completed", type="local_shell_call")


def shell_call() -> Any:
    action = {"commands": ["git status", "git push"]}
    return {"type": "shell_call", "id": "i", "call_id": "c0", "status": "completed", "action": action}


def patch_call() -> Any:
    operation = {"type": "delete_file", "path": "a.txt"}
    return {
        "type": "apply_patch_call",
        "id": "i",
        "call_id": "c0",
        "status": "completed",
        "operation": operation,
    }


def custom_call() -> Any:
    return ResponseCustomToolCall(call_id="c0", input="drop", name="query", type="custom_tool_call")


def computer_call() -> Any:
    wait: Any = {"type": "wait"}
    return ResponseComputerToolCall(
        id="i", call_id="c0", action=wait, pending_safety_checks=[], status="completed", type="computer_call"
    )


class Screen(agents.AsyncComputer):
    def __init__(self, done: list[Any]) -> None:
        self.done = done

    async def screenshot(self) -> str:
        return "aGk="

    async def wait(self) -> None:
        self.done.append("wait")

    async def click(self, x: int, y: int, button: Any) -> None: ...
    async def double_click(self, x: int, y: int) -> None: ...
    async def scroll(self, x: int, y: int, scroll_x: int, scroll_y: int) -> None: ...
    async def type(self, text: str) -> None: ...
    async def move(self, x: int, y: int) -> None: ...
    async def keypress(self, keys: list[str]) -> None: ...
    async def drag(self, path: list[tuple[int, int]]) -> None: ...


class Editor:
    def __init__(self, done: list[Any]) -> None:
        self.done = done

    def delete_file(self, operation: Any) -> ApplyPatchResult:
        self.done.append(operation.path)
        return ApplyPatchResult(status="completed", output="deleted")

    create_file = update_file = delete_file


def kinds(done: list[Any]) -> dict[str, tuple[Any, Any, dict[str, Any]]]:
    """Return, for each kind of locally run tool, a tool, a call of it and the arguments for the rules."""

    def run(request: Any) -> str:
        action = request.data.action
        done.append(getattr(action, "commands", None) or action.command)
        return "ran"

    async def query(ctx: Any, text: str) -> str:
        done.append(text)
        return f"found {text}"

    custom = CustomTool(name="query", description="d", on_invoke_tool=query)
    return {
        "local_shell": (LocalShellTool(executor=run), local_shell_call(), {"command": "git push"}),
        "shell": (ShellTool(executor=run), shell_call(), {"commands": ["git status", "git push"]}),
        "apply_patch": (
            ApplyPatchTool(editor=Editor(done)),
            patch_call(),
            {"type": "delete_file", "path": "a.txt", "diff": None},
        ),
        "query": (custom, custom_call(), {"input": "drop"}),
        "computer": (ComputerTool(computer=Screen(done)), computer_call(), {"action": "wait"}),
    }


KINDS = ["local_shell", "shell", "apply_patch", "query", "computer"]
every_kind = pytest.mark.parametrize("kind", KINDS)


def other_kind(kind: str, done: list[Any], *wraps: Any) -> tuple[Agent, ScriptedModel, dict[str, Any]]:
    tool, call, arguments = kinds(done)[kind]
    # Not the SDK's model, which streams no calls of these kinds.
    model: Any = scripted.ScriptedModel([[call], [assistant_message("done")]])
    return (
        Agent("a", "x", model=model, tools=[tool], middleware=[Around(wrap) for wrap in wraps]),
        model,
        arguments,
    )


@both
@every_kind
async def test_calls_of_every_kind_of_tool_are_emitted(kind: str, streamed: bool) -> None:
    done: list[Any] = []
    agent, _, arguments = other_kind(kind, done)
    received = of_tools(await events_of(agent, streamed=streamed))
    started, finished = received[:2]
    assert started[0] == "started"
    assert json.loads(started[3]) == arguments
    assert finished[:3] == ("finished", *started[1:3])
    assert started[2] == "c0" or kind in ("apply_patch", "computer")
    assert len(done) == 1
    # The SDK takes a screenshot of a computer after each action.
    assert len(received) == (4 if kind == "computer" else 2)


@both
@every_kind
async def test_middleware_wraps_every_kind_of_tool(kind: str, streamed: bool) -> None:
    done: list[Any] = []
    seen: list[str] = []

    async def look(call: Any, call_next: Any) -> Any:
        seen.append(f"> {call.name}")
        result = await call_next(call)
        seen.append("<")
        return result

    agent, _, _ = other_kind(kind, done, look)
    await events_of(agent, streamed=streamed)
    assert len(done) == 1
    assert seen[:2] == [f"> {agent.sdk_agent.tools[0].name}", "<"]


@both
@every_kind
async def test_a_result_can_be_computed_for_every_kind_of_tool(kind: str, streamed: bool) -> None:
    done: list[Any] = []

    async def compute(call: Any, call_next: Any) -> Any:
        return "aGk=" if kind == "computer" else "computed"

    agent, model, _ = other_kind(kind, done, compute)
    await events_of(agent, streamed=streamed)
    assert done == []
    assert ("aGk=" if kind == "computer" else "computed") in outputs_sent_to(model)[0]


@both
@every_kind
async def test_only_a_custom_tools_input_can_be_replaced(kind: str, streamed: bool) -> None:
    done: list[Any] = []

    async def replace(call: Any, call_next: Any) -> Any:
        call.arguments = '{"input": "select"}'
        return await call_next(call)

    agent, model, _ = other_kind(kind, done, replace)
    if kind == "query":
        await events_of(agent, streamed=streamed)
        assert (done, outputs_sent_to(model)) == (["select"], ["found select"])
    else:
        with pytest.raises(MiddlewareResultError, match=r"\[E80\].*cannot be replaced"):
            await events_of(agent, streamed=streamed)
        assert done == []


@pytest.mark.parametrize("wrong", ["", "[]", "{}", '{"input": 5}', "select"])
async def test_a_custom_tools_input_must_remain_valid(wrong: str) -> None:
    done: list[Any] = []

    async def replace(call: Any, call_next: Any) -> Any:
        call.arguments = wrong
        return await call_next(call)

    agent, _, _ = other_kind("query", done, replace)
    with pytest.raises(MiddlewareResultError, match="input"):
        await events_of(agent)
    assert done == []


async def test_the_rules_check_a_custom_tools_replaced_input() -> None:
    done: list[Any] = []

    async def replace(call: Any, call_next: Any) -> Any:
        call.arguments = json.dumps({"input": "drop everything"})
        return await call_next(call)

    agent, model, _ = other_kind("query", done, replace)
    rules = {"params": {"query": {"input": {"maxLength": 4}}}}
    received = await events_of(agent, context={"tool_rules": rules})
    assert done == []
    assert of_tools(received)[-1] == ("E14", "query", "c0")
    assert "E14" in outputs_sent_to(model)[0]


@both
@every_kind
async def test_refusals_of_every_kind_of_tool_are_emitted(kind: str, streamed: bool) -> None:
    done: list[Any] = []
    agent, _, _ = other_kind(kind, done)
    context: dict[str, Any] = {}

    class Hooks(agents.RunHooks[Any]):
        async def on_llm_end(self, *_: Any) -> None:
            context["tool_rules"]["deny"] = [kind]

    received: list[Event] = []
    with agent.subscribe(received.append):
        if kind == "computer":
            with pytest.raises(ToolNotAllowedError):
                await finish(agent, streamed=streamed, context=context, hooks=Hooks())
        else:
            await finish(agent, streamed=streamed, context=context, hooks=Hooks())
    check_whole(received)
    assert [event[0] for event in of_tools(received)] == ["started", "E8"]
    assert done == []


@both
@every_kind
async def test_calls_of_hidden_tools_of_every_kind_are_emitted(kind: str, streamed: bool) -> None:
    agent, _, _ = other_kind(kind, [])
    received: list[Event] = []
    with agent.subscribe(received.append), pytest.raises(ToolNotAllowedError):
        await finish(agent, streamed=streamed, context={"tool_rules": {"deny": [kind]}})
    check_whole(received)
    assert [event[0] for event in of_tools(received)] == ["started", "E8"]


@both
@every_kind
async def test_an_error_of_a_middleware_around_them_ends_the_run(kind: str, streamed: bool) -> None:
    raised = LookupError("mine")

    async def fail(call: Any, call_next: Any) -> Any:
        raise raised

    agent, _, _ = other_kind(kind, [], fail)
    with pytest.raises(LookupError) as caught:
        await events_of(agent, streamed=streamed)
    assert caught.value is raised


# --- approvals ----------------------------------------------------------------------------------------


@both
async def test_a_call_that_needs_approval_is_made_when_it_is_approved(streamed: bool) -> None:
    paid: list[int] = []

    @agents.function_tool(needs_approval=True)
    def pay(amount: int) -> str:
        paid.append(amount)
        return "paid"

    def made() -> Agent:
        model = calling(("pay", {"amount": 3}))
        return Agent("a", "x", model=model, tools=[pay], middleware=[Around(pass_on)])

    agent = made()
    received: list[Event] = []
    with agent.subscribe(received.append):
        context = await finish(agent, streamed=streamed)
    check_whole(received)
    assert of_tools(received) == []
    (asked,) = [event.to_dict() for event in received if event.type == "approval_needed"]
    assert (asked["agent"], asked["tool"], asked["call_id"]) == ("a", "pay", "c0")
    assert json.loads(asked["arguments"]) == {"amount": 3}
    text = json.dumps(context["result"].to_state().to_json())
    for approved in (True, False):
        paid.clear()
        other = made()
        state = await agents.RunState.from_json(other.sdk_agent, json.loads(text))
        (item,) = state.get_interruptions()
        (state.approve if approved else state.reject)(item)
        received = []
        with other.subscribe(received.append):
            if streamed:
                async with other.stream(state) as run:
                    async for _ in run:
                        continue
            else:
                await other.run_async(state)
        check_whole(received)
        assert paid == ([3] if approved else [])
        assert len(of_tools(received)) == (2 if approved else 0)
