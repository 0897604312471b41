"""A tool that the rules refuse is neither shown nor run, whatever its kind and whenever the rules change."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import gc
import json
import weakref
from decimal import Decimal
from typing import Any

import agents
import pytest
from agents import (
    ApplyPatchTool,
    AsyncComputer,
    CodeInterpreterTool,
    ComputerProvider,
    ComputerTool,
    CustomTool,
    FileSearchTool,
    FunctionTool,
    LocalShellTool,
    RunContextWrapper,
    ShellTool,
    WebSearchTool,
)
from agents.editor import ApplyPatchOperation, ApplyPatchResult
from openai.types.responses import (
    ResponseComputerToolCall,
    ResponseCustomToolCall,
    ResponseFunctionWebSearch,
)
from openai.types.responses.response_output_item import LocalShellCall, LocalShellCallAction

from kantan_agents import Agent, KantanAgentsError, rule_parameter
from kantan_agents.errors import ToolNotAllowedError
from kantan_agents.testing import OfflineServer, ScriptedModel, ScriptedToolCall, assistant_message
from kantan_agents.tool_rules import ToolRules
from tests.tools.conftest import Executed, calls, outputs, shown

DENIED = "[kantan-agents][E8] Tool is not allowed: "


async def test_a_tool_that_is_not_allowed_is_not_shown(executed: Executed) -> None:
    model = calls()
    agent = Agent("a", "x", tools=[executed.tool("read"), executed.tool("write")], model=model)
    await agent.run_async("hi", {"tool_rules": {"allow": ["read"]}})
    assert shown(model) == ["read"]


@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_a_denied_tool_is_neither_sent_nor_run_over_http(executed: Executed, api: str) -> None:
    script: list[Any] = [
        ScriptedToolCall("fs_delete", {"value": "x"}),
        ScriptedToolCall("fs_read", {"value": "y"}),
        "done",
    ]
    with OfflineServer(script) as server:
        tools = [executed.tool("fs_read"), executed.tool("fs_delete")]
        agent = Agent("a", "x", tools=tools, model=server.bundle(api=api))
        await agent.run_async("hi", {"tool_rules": {"allow": ["fs_*"], "deny": ["*_delete"]}})
        assert executed == [("fs_read", "y")]
        sent = json.dumps(server.requests[0].body["tools"])
        assert "fs_read" in sent
        assert "fs_delete" not in sent
        answer = json.dumps(server.requests[1].body)
        assert f"{DENIED}fs_delete" in answer
        assert "Tools you may use: fs_read." in answer


async def test_a_call_of_an_unknown_tool_is_answered_with_the_usable_tools(executed: Executed) -> None:
    model = calls(("raed", {}))
    agent = Agent("a", "x", tools=[executed.tool("read"), executed.tool("write")], model=model)
    context = await agent.run_async("hi", {"tool_rules": {"deny": ["write"]}})
    (answer,) = outputs(model)
    assert answer == ("[kantan-agents][E21] There is no tool with this name: raed\nTools you may use: read.")
    assert context["result"].final_output == "done"


async def test_a_users_error_formatter_still_decides_the_message(executed: Executed) -> None:
    seen: list[Any] = []

    def formatter(args: Any) -> str | None:
        seen.append((args.kind, args.default_message))
        return None if args.tool_name == "one" else "mine"

    model = calls(("one", {}), ("two", {}))
    agent = Agent("a", "x", tools=[executed.tool("read")], model=model)
    await agent.run_async("hi", run_config=agents.RunConfig(tool_error_formatter=formatter))
    one, two = outputs(model)
    assert one.startswith("[kantan-agents][E21]")
    assert two == "mine"
    assert seen[0] == ("tool_not_found", one)


@pytest.mark.parametrize(
    ("rules", "arguments", "code"),
    [
        ({"value": {"maxLength": 3}}, {"value": "long"}, "E14"),
        ({"value": {"minLength": 3}}, {"value": "ab"}, "E13"),
        ({"value": {"pattern": "^[a-c]+$"}}, {"value": "abd"}, "E15"),
        ({"value": {"enum": ["a"]}}, {"value": "b"}, "E12"),
        ({"value": {"type": "integer"}}, {"value": "b"}, "E11"),
        ({"value": {"maxLength": 3}}, {"value": 12345}, "E11"),  # the tool declares a text
    ],
)
async def test_arguments_that_break_a_rule_are_reported_to_the_model(
    executed: Executed, rules: Any, arguments: Any, code: str
) -> None:
    model = calls(("read", arguments), ("write", {}))
    agent = Agent("a", "x", tools=[executed.tool("read"), executed.tool("write")], model=model)
    await agent.run_async("hi", {"tool_rules": {"params": {"read": rules}}})
    assert executed == [("write", "")]
    assert outputs(model)[0].startswith(f"[kantan-agents][{code}] Tool parameter")
    assert "read.value\nThe rule is " in outputs(model)[0]


@pytest.mark.parametrize(
    "text", ["[]", "null", '{"value": "a", "value": "b"}', '{"value": NaN}', '{"value": 1e999}', "{"]
)
async def test_ambiguous_json_is_refused_under_parameter_rules(executed: Executed, text: str) -> None:
    model = calls(("read", text))
    agent = Agent("a", "x", tools=[executed.tool("read")], model=model)
    await agent.run_async("hi", {"tool_rules": {"params": {"read": {"value": {"maxLength": 9}}}}})
    assert executed == []
    assert outputs(model)[0].startswith("[kantan-agents][E10] Tool input must be a JSON object")


async def test_only_some_calls_of_a_tool_are_allowed(executed: Executed) -> None:
    model = calls(
        ("Bash", {"value": "git status"}),
        ("Bash", {"value": "git status && rm -rf /"}),
        ("Bash", {"value": "git push"}),
        ("Bash", {"value": "ls"}),
    )
    agent = Agent("a", "x", tools=[executed.tool("Bash")], model=model)
    rules = {"allow": ["Bash(git:*)"], "deny": ["Bash(git push:*)"]}
    await agent.run_async("hi", {"tool_rules": rules})
    assert executed == [("Bash", "git status")]
    assert shown(model) == ["Bash"]
    assert [output.startswith(DENIED) for output in outputs(model)] == [False, True, True, True]
    assert "Calls that are allowed: Bash(git:*)." in outputs(model)[1]


async def test_a_tool_declares_the_parameter_that_patterns_match() -> None:
    ran: list[str] = []

    @rule_parameter("command")
    def bash(directory: str, command: str) -> str:
        """Run a command."""
        ran.append(command)
        return directory

    model = calls(
        ("bash", {"directory": "git", "command": "rm x"}),
        ("bash", {"directory": "/", "command": "git log"}),
    )
    agent = Agent("a", "x", tools=[bash], model=model)
    await agent.run_async("hi", {"tool_rules": {"allow": ["bash(git:*)"]}})
    assert ran == ["git log"]


def test_a_declared_parameter_must_exist() -> None:
    @rule_parameter("comand")
    def bash(command: str) -> str:
        """Run a command."""
        return command

    with pytest.raises(
        KantanAgentsError, match=r"E75.*tool bash has no parameter 'comand' \(it has: command\)"
    ):
        Agent("a", "x", tools=[bash])


@pytest.mark.parametrize("others", [1, 200])
async def test_stricter_rules_apply_to_the_next_call(executed: Executed, others: int) -> None:
    model = calls(("read", {"value": "1"}), ("read", {"value": "2"}), ("read", {"value": "3"}))
    context: dict[str, Any] = {"tool_rules": {"deny": ["other"] * others}}

    class Hooks(agents.RunHooks[Any]):
        async def on_llm_end(self, ctx: Any, agent: Any, response: Any) -> None:
            if len(executed) == 2:
                context["tool_rules"]["deny"].append("read")

    agent = Agent("a", "x", tools=[executed.tool("read")], model=model)
    await agent.run_async("hi", context, hooks=Hooks())
    assert executed == [("read", "1"), ("read", "2")]
    assert outputs(model)[2].startswith(f"{DENIED}read")
    assert shown(model, 2) == ["read"]
    assert shown(model, 3) == []


@pytest.mark.parametrize("others", [1, 200])
@pytest.mark.parametrize("kind", ["allow", "deny"])
async def test_a_list_shared_by_runs_may_change_between_them(
    executed: Executed, kind: str, others: int
) -> None:
    names = [f"other_{number}" for number in range(others)]
    seen = []
    for first in ("other", "read", "other", "read"):
        names[0] = first
        model = calls(("read", {"value": first}))
        agent = Agent("a", "x", tools=[executed.tool("read")], model=model)
        await agent.run_async("hi", {"tool_rules": {kind: names}})
        seen.append(shown(model, 0) == ["read"])
    assert seen == [kind == "deny", kind == "allow"] * 2
    assert len(executed) == 2


async def test_different_rules_with_the_same_long_list_are_distinguished(executed: Executed) -> None:
    names = ["read", *(f"other_{number}" for number in range(200))]
    cases: list[tuple[dict[str, Any], bool]] = [
        ({"allow": names}, True),
        ({"deny": names}, False),
        ({"allow": names, "deny": names}, False),
        ({"allow": names, "params": {"read": {"value": {"enum": ["9"]}}}}, False),
        ({"allow": names, "deny": ["read"]}, False),
        ({"allow": tuple(names)}, True),
        ({"allow": names}, True),
    ]
    for rules, allowed in cases:
        executed.clear()
        model = calls(("read", {"value": "1"}))
        await Agent("a", "x", tools=[executed.tool("read")], model=model).run_async(
            "hi", {"tool_rules": rules}
        )
        assert bool(executed) is allowed, rules.keys()


async def test_a_replaced_element_of_a_list_takes_effect(executed: Executed) -> None:
    model = calls(("read", {"value": "1"}), ("read", {"value": "2"}))
    context: dict[str, Any] = {
        "tool_rules": {"deny": ["other"], "params": {"read": {"value": {"enum": ["1", "2"]}}}}
    }

    class Hooks(agents.RunHooks[Any]):
        async def on_tool_end(self, ctx: Any, agent: Any, tool: Any, result: Any) -> None:
            context["tool_rules"]["params"]["read"]["value"]["enum"][1] = "3"

    agent = Agent("a", "x", tools=[executed.tool("read")], model=model)
    await agent.run_async("hi", context, hooks=Hooks())
    assert executed == [("read", "1")]
    assert "E12" in outputs(model)[1]


# --- what guarding keeps -------------------------------------------------------------------------------


async def test_a_guarded_tool_keeps_its_class_and_settings(executed: Executed) -> None:
    class Mine(FunctionTool):
        extra = "kept"

    plain = executed.tool("t")
    mine = Mine(
        name="mine",
        description="d",
        params_json_schema=plain.params_json_schema,
        on_invoke_tool=plain.on_invoke_tool,
        timeout_seconds=3.0,
        needs_approval=True,
        is_enabled=lambda ctx, agent: True,
    )
    invoker = mine.on_invoke_tool
    agent = Agent("a", "x", tools=[mine, executed.tool("late", defer_loading=True)])
    kept, late = await agent.sdk_agent.get_all_tools(RunContextWrapper({}))
    assert isinstance(kept, Mine)
    assert (kept.extra, kept.timeout_seconds, kept.needs_approval) == ("kept", 3.0, True)
    assert isinstance(late, FunctionTool)
    assert late.defer_loading
    assert mine.on_invoke_tool is invoker  # the user's own tool is as it was


async def test_an_invoker_that_wants_the_plain_run_context_gets_it(executed: Executed) -> None:
    got: list[Any] = []

    async def invoke(ctx: RunContextWrapper[Any], arguments: str) -> str:
        got.append(type(ctx))
        return "ok"

    tool = FunctionTool("t", "d", {"type": "object", "properties": {}}, invoke, strict_json_schema=False)
    await agents.Runner.run(agents.Agent(name="plain", tools=[tool], model=calls(("t", {}))), "hi")
    await Agent("a", "x", tools=[tool], model=calls(("t", {}))).run_async("hi")
    assert got == [RunContextWrapper, RunContextWrapper]


async def test_a_timeout_and_guardrails_of_a_guarded_tool_still_work() -> None:
    @agents.tool_input_guardrail
    def refuses(data: Any) -> agents.ToolGuardrailFunctionOutput:
        return agents.ToolGuardrailFunctionOutput.reject_content("not this")

    async def slow(value: str) -> str:
        """Sleep."""
        await asyncio.Event().wait()
        return value

    stuck = agents.function_tool(slow, timeout=0.01)
    railed = agents.function_tool(slow, name_override="railed")
    railed.tool_input_guardrails = [refuses]
    model = calls(("slow", {"value": "a"}), ("railed", {"value": "a"}))
    agent = Agent("a", "x", tools=[stuck, railed], model=model)
    await agent.run_async("hi", {"tool_rules": {"allow": "*"}})
    timed_out, rejected = outputs(model)
    assert "timed out" in timed_out
    assert rejected == "not this"


# --- tools other than function tools ------------------------------------------------------------------


def local_shell_call(*command: str) -> Any:
    action = LocalShellCallAction(command=list(command), env={}, type="exec")
    return LocalShellCall(id="i", call_id="c", action=action, status="completed", type="local_shell_call")


def shell_call(*commands: str) -> Any:
    return {
        "type": "shell_call",
        "id": "i",
        "call_id": "c",
        "status": "completed",
        "action": {"commands": list(commands)},
    }


def patch_call(path: str, kind: str = "delete_file") -> Any:
    return {
        "type": "apply_patch_call",
        "id": "i",
        "call_id": "c",
        "status": "completed",
        "operation": {"type": kind, "path": path},
    }


def custom_call(text: str) -> Any:
    return ResponseCustomToolCall(call_id="c", input=text, name="query", type="custom_tool_call")


def computer_call() -> Any:
    wait: Any = {"type": "wait"}
    return ResponseComputerToolCall(
        id="i",
        call_id="c",
        action=wait,
        pending_safety_checks=[],
        status="completed",
        type="computer_call",
    )


class Screen(AsyncComputer):
    """A computer that records its actions."""

    def __init__(self, executed: Executed) -> None:
        self.executed = executed

    async def screenshot(self) -> str:
        return "aGk="

    async def wait(self) -> None:
        self.executed.append(("computer", "wait"))

    async def click(self, x: int, y: int, button: Any) -> None: ...
    async def double_click(self, x: int, y: int) -> None: ...
    async def scroll(self, x: int, y: int, scroll_x: int, scroll_y: int) -> None: ...
    async def type(self, text: str) -> None: ...
    async def move(self, x: int, y: int) -> None: ...
    async def keypress(self, keys: list[str]) -> None: ...
    async def drag(self, path: list[tuple[int, int]]) -> None: ...


class Editor:
    """An editor that records its operations."""

    def __init__(self, executed: Executed) -> None:
        self.executed = executed

    def delete_file(self, operation: Any) -> ApplyPatchResult:
        self.executed.append(("apply_patch", operation.path))
        return ApplyPatchResult(status="completed", output="deleted")

    create_file = update_file = delete_file


def kinds(executed: Executed) -> dict[str, tuple[Any, Any]]:
    """Return, for each kind of tool that runs in this process, the tool and a call of it."""

    def run_local(request: Any) -> str:
        executed.append(("local_shell", request.data.action.command))
        return "ran"

    async def run_shell(request: Any) -> str:
        executed.append(("shell", request.data.action.commands))
        return "ran"

    async def run_custom(ctx: Any, text: str) -> str:
        executed.append(("query", text))
        return "ran"

    return {
        "local_shell": (LocalShellTool(executor=run_local), local_shell_call("git", "push")),
        "shell": (ShellTool(executor=run_shell), shell_call("git status", "git push")),
        "apply_patch": (ApplyPatchTool(editor=Editor(executed)), patch_call("secret.txt")),
        "query": (CustomTool(name="query", description="d", on_invoke_tool=run_custom), custom_call("drop")),
        "computer": (ComputerTool(computer=Screen(executed)), computer_call()),
    }


KINDS = ["local_shell", "shell", "apply_patch", "query", "computer"]


@pytest.mark.parametrize("kind", KINDS)
async def test_every_kind_of_tool_runs_when_it_is_allowed(executed: Executed, kind: str) -> None:
    tool, call = kinds(executed)[kind]
    model = ScriptedModel([[call], [assistant_message("done")]])
    agent = Agent("a", "x", tools=[tool], model=model)
    await agent.run_async("hi", {"tool_rules": {"allow": [kind], "params": {"none": {"a": {"enum": [1]}}}}})
    assert len(executed) == 1


@pytest.mark.parametrize("kind", KINDS)
async def test_no_kind_of_tool_is_shown_or_run_when_it_is_denied(executed: Executed, kind: str) -> None:
    tool, call = kinds(executed)[kind]
    model = ScriptedModel([[call], [assistant_message("done")]])
    agent = Agent("a", "x", tools=[tool], model=model)
    with pytest.raises(ToolNotAllowedError) as caught:  # the SDK has no answer to such a call
        await agent.run_async("hi", {"tool_rules": {"deny": [kind]}})
    assert executed == []
    assert shown(model) == []
    assert str(caught.value) == f"{DENIED}{tool.name}"


@pytest.mark.parametrize("kind", KINDS)
async def test_no_kind_of_tool_runs_when_it_is_denied_after_it_was_shown(
    executed: Executed, kind: str
) -> None:
    tool, call = kinds(executed)[kind]
    model = ScriptedModel([[call], [assistant_message("done")]])
    context: dict[str, Any] = {}

    class Hooks(agents.RunHooks[Any]):
        async def on_llm_end(self, ctx: Any, agent: Any, response: Any) -> None:
            context["tool_rules"]["deny"] = [kind]

    agent = Agent("a", "x", tools=[tool], model=model)
    if kind == "computer":  # its result is a screenshot: there is nothing to tell the model with
        with pytest.raises(ToolNotAllowedError):
            await agent.run_async("hi", context, hooks=Hooks())
    else:
        await agent.run_async("hi", context, hooks=Hooks())
        assert DENIED + tool.name in outputs(model)[0]
    assert shown(model) == [tool.name]
    assert executed == []


@pytest.mark.parametrize(
    ("kind", "rules"),
    [
        ("local_shell", {"allow": ["local_shell(git status:*)"]}),
        ("shell", {"allow": ["shell(git status:*)"]}),
        ("shell", {"deny": ["shell(git push:*)"]}),
        ("shell", {"params": {"shell": {"commands[]": {"pattern": "^git status"}}}}),
        ("apply_patch", {"params": {"apply_patch": {"path": {"pattern": "^docs/"}}}}),
        ("apply_patch", {"params": {"apply_patch": {"type": {"enum": ["create_file"]}}}}),
        ("query", {"params": {"query": {"input": {"pattern": "^select "}}}}),
        ("query", {"deny": ["query(drop)"]}),
    ],
)
async def test_their_calls_are_checked_by_arguments(executed: Executed, kind: str, rules: Any) -> None:
    tool, call = kinds(executed)[kind]
    model = ScriptedModel([[call], [assistant_message("done")]])
    await Agent("a", "x", tools=[tool], model=model).run_async("hi", {"tool_rules": rules})
    assert executed == []
    assert "[kantan-agents][E" in outputs(model)[0]


async def test_a_computer_created_for_each_run_is_guarded_and_disposed(executed: Executed) -> None:
    gone: list[Any] = []
    screens: list[Screen] = []

    def create(*, run_context: Any) -> Screen:
        screens.append(Screen(executed))
        return screens[-1]

    async def dispose(*, run_context: Any, computer: Any) -> None:
        gone.append(computer)

    tool: Any = ComputerTool(computer=ComputerProvider(create=create, dispose=dispose))
    model = ScriptedModel([[computer_call()], [assistant_message("done")]])
    await Agent("a", "x", tools=[tool], model=model).run_async("hi")
    assert executed == [("computer", "wait")]
    assert gone == screens


async def test_rules_for_hosted_tools_work_with_each_of_their_names() -> None:
    tools: list[Any] = [
        WebSearchTool(),
        FileSearchTool(vector_store_ids=["v"]),
        CodeInterpreterTool(tool_config={"type": "code_interpreter", "container": {"type": "auto"}}),
    ]
    for denied in ("web_search", "web_search_preview", "web_*"):
        model = calls()
        await Agent("a", "x", tools=tools, model=model).run_async("hi", {"tool_rules": {"deny": [denied]}})
        assert shown(model) == ["file_search", "code_interpreter"]


async def test_a_refused_hosted_call_that_the_provider_makes_is_recorded(traces: Any) -> None:
    def model() -> ScriptedModel:
        search: Any = {"type": "search", "query": "q"}
        call = ResponseFunctionWebSearch(id="i", action=search, status="completed", type="web_search_call")
        return ScriptedModel([[call, assistant_message("found")]])

    rules = {"tool_rules": {"deny": ["web_search"]}}
    await Agent("a", "x", tools=[WebSearchTool()], model=model()).run_async("hi", dict(rules))
    (span,) = traces.spans(name="tool_refused")
    assert span.raw["span_data"]["data"]["tool"] == "web_search"
    strict = Agent("a", "x", tools=[WebSearchTool()], model=model(), on_rule_violation="raise")
    with pytest.raises(ToolNotAllowedError):
        await strict.run_async("hi", dict(rules))


async def test_a_tool_added_to_the_sdk_agent_later_is_guarded(executed: Executed) -> None:
    model = calls(("late", {"value": "long"}), ("late", {"value": "ok"}))
    agent = Agent("a", "x", model=model)
    agent.sdk_agent.tools.append(executed.tool("late"))
    clone = agent.sdk_agent.clone(tools=[executed.tool("late")])
    context = {"tool_rules": {"params": {"late": {"value": {"maxLength": 2}}}}}
    await agent.run_async("hi", context)
    assert executed == [("late", "ok")]
    (tool,) = await clone.get_all_tools(RunContextWrapper({}))
    assert tool is not clone.tools[0]


@pytest.mark.parametrize("operation", ["create_file", "update_file", "delete_file"])
async def test_each_operation_of_an_editor_is_checked(executed: Executed, operation: str) -> None:
    class Mine(Editor):
        kept = "the editor's own"

    tool = ApplyPatchTool(editor=Mine(executed))
    script = [[patch_call(path, operation)] for path in ("a.txt", "docs/b.txt")]
    for number, (call,) in enumerate(script):
        call["call_id"] = f"c{number}"
        if operation != "delete_file":
            call["operation"]["diff"] = "+x"
    agent = Agent("a", "x", tools=[tool], model=ScriptedModel([*script, [assistant_message("done")]]))
    rules = {"params": {"apply_patch": {"path": {"pattern": "^docs/"}}}}
    await agent.run_async("hi", {"tool_rules": rules})
    assert executed == [("apply_patch", "docs/b.txt")]
    (guarded,) = await agent.sdk_agent.get_all_tools(RunContextWrapper({}))
    assert isinstance(guarded, ApplyPatchTool)
    assert getattr(guarded.editor, "kept", None) == "the editor's own"


async def test_a_file_is_not_moved_to_a_refused_path(executed: Executed) -> None:
    agent = Agent("a", "x", tools=[ApplyPatchTool(editor=Editor(executed))])
    (tool,) = await agent.sdk_agent.get_all_tools(RunContextWrapper({}))
    assert isinstance(tool, ApplyPatchTool)
    rules = {"params": {"apply_patch": {"path": {"pattern": "^docs/"}}}}
    operation = ApplyPatchOperation(
        "update_file",
        "docs/a.txt",
        diff="+x",
        ctx_wrapper=RunContextWrapper({"tool_rules": rules}),
        move_to="secret/a.txt",
    )
    answer: Any = await tool.editor.update_file(operation)  # type: ignore[misc]
    assert (answer.status, executed) == ("failed", [])
    assert "E15" in answer.output


class Rules(dict[str, Any]):
    """Rules of a custom dict type."""


async def test_rules_of_a_custom_type_apply_and_their_changes_are_noticed(executed: Executed) -> None:
    model = calls(("read", {"value": "1"}), ("read", {"value": "12"}), ("read", {"value": "1"}))
    limits = Rules(maxLength=1)
    context: dict[str, Any] = {"tool_rules": Rules(params=Rules(read=Rules(value=limits)))}

    class Hooks(agents.RunHooks[Any]):
        async def on_llm_end(self, ctx: Any, agent: Any, response: Any) -> None:
            if len(model.calls) == 3:
                limits["maxLength"] = 0

    agent = Agent("a", "x", tools=[executed.tool("read")], model=model)
    await agent.run_async("hi", context, hooks=Hooks())
    assert executed == [("read", "1")]
    assert [("E14" in output) for output in outputs(model)] == [False, True, True]


@pytest.mark.parametrize(("rules", "code"), [([], "E18"), ("*", "E18"), ({"deny": "rm"}, "E20")])
async def test_rules_replaced_by_an_invalid_value_refuse_every_call(
    executed: Executed, rules: Any, code: str
) -> None:
    model = calls(("read", {"value": "1"}))
    context: dict[str, Any] = {}

    class Hooks(agents.RunHooks[Any]):
        async def on_llm_end(self, ctx: Any, agent: Any, response: Any) -> None:
            context["tool_rules"] = rules

        async def on_tool_end(self, ctx: Any, agent: Any, tool: Any, result: Any) -> None:
            context["tool_rules"] = {}

    agent = Agent(
        "a", "x", tools=[executed.tool("read")], model=model, tool_use_behavior="stop_on_first_tool"
    )
    context = await agent.run_async("hi", context, hooks=Hooks())
    assert executed == []
    assert f"[{code}]" in context["result"].final_output


async def test_a_shell_in_a_container_of_the_provider_is_shown_by_the_rules() -> None:
    tool = ShellTool(environment={"type": "container_auto"})
    for rules, seen in (({}, ["shell"]), ({"deny": ["shell"]}, [])):
        model = calls()
        await Agent("a", "x", tools=[tool], model=model).run_async("hi", {"tool_rules": rules})
        assert shown(model) == seen


async def test_a_copy_of_a_tool_keeps_its_declared_parameter() -> None:
    ran: list[str] = []

    def shell(directory: str, command: str) -> str:
        """Run a command."""
        ran.append(command)
        return directory

    declared = rule_parameter("command")(agents.function_tool(shell))
    renamed = dataclasses.replace(declared, name="bash")
    model = calls(("bash", {"directory": "git", "command": "rm x"}))
    agent = Agent("a", "x", tools=[renamed], model=model)
    await agent.run_async("hi", {"tool_rules": {"allow": ["bash(git:*)"]}})
    assert ran == []
    assert (
        rule_parameter("directory")(agents.function_tool(shell)) is not None
    )  # another tool, another choice
    await Agent(
        "a", "x", tools=[declared], model=calls(("shell", {"directory": "x", "command": "git x"}))
    ).run_async("hi", {"tool_rules": {"allow": ["shell(git:*)"]}})
    assert ran == ["git x"]


async def test_agents_that_share_a_computer_tool_each_have_their_own_guard(executed: Executed) -> None:
    tool: Any = ComputerTool(computer=Screen(executed))
    Agent("lax", "x", tools=[tool])
    strict = Agent("strict", "x", tools=[tool], model=ScriptedModel([[computer_call()]]))
    rules = ToolRules.parse({"params": {"computer": {"action": {"enum": ["screenshot"]}}}})
    strict.standing_rules = strict.standing_rules.with_layer("provider house", rules)
    with pytest.raises(KantanAgentsError, match="E12"):
        await strict.run_async("hi")
    assert executed == []


async def test_agents_with_a_computer_are_garbage_collected(executed: Executed) -> None:
    agent = Agent("a", "x", tools=[ComputerTool(computer=Screen(executed))])
    gone = weakref.ref(agent)
    del agent
    gc.collect()
    assert gone() is None


async def test_a_number_as_text_does_not_bypass_a_maximum() -> None:
    paid: list[Decimal] = []

    def pay(amount: Decimal) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    model = calls(("pay", {"amount": "500"}), ("pay", {"amount": 5}))
    rules = {"params": {"pay": {"amount": {"maximum": 50}}}}
    await Agent("a", "x", tools=[pay], model=model).run_async("hi", {"tool_rules": rules})
    assert paid == [Decimal(5)]
    assert "E11" in outputs(model)[0]


@pytest.mark.parametrize("rules", [{"allow": [["x"]]}, {"deny": [{}]}, {"allow": ({},)}])
async def test_unhashable_names_are_reported_as_mistakes(rules: Any) -> None:
    with pytest.raises(KantanAgentsError, match="E20"):
        await Agent("a", "x", model=calls()).run_async("hi", {"tool_rules": rules})


async def test_guarded_tools_can_be_copied(executed: Executed) -> None:
    tools = [executed.tool("read"), ApplyPatchTool(editor=Editor(executed))]
    guarded = await Agent("a", "x", tools=tools).sdk_agent.get_all_tools(RunContextWrapper({}))
    for tool in guarded:
        assert copy.deepcopy(tool).name == tool.name
