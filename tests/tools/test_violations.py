"""The violation policy: a refused call is feedback, ends the run, or a function decides."""

from __future__ import annotations

import json
from typing import Any

import agents
import pytest
from agents import RunConfig

from kantan_agents import Agent, KantanAgentsError, RuleViolation
from kantan_agents.errors import ToolNotAllowedError, ToolParameterMaxLengthError
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from tests.tools.conftest import Executed, calls, outputs

RULES = {"deny": ["delete"], "params": {"read": {"value": {"maxLength": 3}}}}


def reading(executed: Executed, *steps: Any, **options: Any) -> tuple[Agent, ScriptedModel]:
    model = calls(*(steps or [("read", {"value": "secret"})]))
    tools = [executed.tool("read"), executed.tool("delete")]
    return Agent("reader", "x", tools=tools, model=model, **options), model


async def test_by_default_a_violation_is_feedback_for_the_model(executed: Executed) -> None:
    agent, model = reading(executed, ("read", {"value": "secret"}), ("read", {"value": "ok"}))
    context = await agent.run_async("hi", {"tool_rules": RULES})
    assert outputs(model) == [
        "[kantan-agents][E14] Tool parameter maxLength mismatch: read.value\nThe rule is maxLength: 3.",
        "read did ok",
    ]
    assert context["result"].final_output == "done"


@pytest.mark.parametrize(
    ("step", "error"),
    [
        (("read", {"value": "secret"}), ToolParameterMaxLengthError),
        (("delete", {}), ToolNotAllowedError),  # hidden from the start
    ],
)
async def test_raise_ends_the_run_with_the_error_and_restores_the_context(
    executed: Executed, step: Any, error: Any
) -> None:
    agent, model = reading(executed, step, on_rule_violation="raise")
    context = {"tool_rules": RULES, "history": [], "mine": 1}
    with pytest.raises(error) as caught:
        await agent.run_async("hi", context)
    assert executed == []
    assert context == {"tool_rules": RULES, "history": [], "mine": 1, "result": None}
    assert len(model.calls) == 1
    assert caught.value.kantan_run.agent is agent


async def test_raise_also_ends_the_run_for_a_violation_in_an_agent_as_tool(
    executed: Executed,
) -> None:
    inner = Agent("inner", "x", tools=[executed.tool("read")], model=calls(("read", {"value": "secret"})))
    tool = inner.sdk_agent.as_tool("ask", "Ask.")
    model = calls(("ask", {"input": "q"}))
    outer = Agent("outer", "x", tools=[tool], model=model, on_rule_violation="raise")
    with pytest.raises(ToolParameterMaxLengthError):
        await outer.run_async("hi", {"tool_rules": RULES})
    assert len(model.calls) == 1


async def test_raise_also_ends_the_run_on_its_last_turn(executed: Executed) -> None:
    inner = Agent("inner", "x", tools=[executed.tool("read")], model=calls(("read", {"value": "secret"})))
    tool = inner.sdk_agent.as_tool("ask", "Ask.")
    outer = Agent(
        "outer",
        "x",
        tools=[tool],
        model=calls(("ask", {"input": "q"})),
        on_rule_violation="raise",
        tool_use_behavior="stop_on_first_tool",
    )
    context: dict[str, Any] = {"tool_rules": RULES}
    with pytest.raises(ToolParameterMaxLengthError):
        await outer.run_async("hi", context)
    assert context["result"] is None


async def test_a_middleware_may_retry_after_a_violation(executed: Executed) -> None:
    async def once_more(run: Any, call_next: Any) -> None:
        try:
            await call_next(run)
        except ToolNotAllowedError:
            run.context["tool_rules"] = {}
            await call_next(run)

    model = ScriptedModel(
        [
            [function_call("delete", {}, call_id="1")],
            [function_call("delete", {}, call_id="2")],
            [assistant_message("done")],
        ]
    )
    agent = Agent(
        "a",
        "x",
        tools=[executed.tool("delete")],
        model=model,
        on_rule_violation="raise",
        middleware=[once_more],
    )
    context = await agent.run_async("hi", {"tool_rules": {"deny": ["delete"]}})
    assert executed == [("delete", "")]
    assert context["result"].final_output == "done"


@pytest.mark.parametrize("sync", [True, False])
async def test_a_function_decides_for_each_violation(executed: Executed, sync: bool) -> None:
    seen: list[RuleViolation] = []

    def decide(violation: RuleViolation) -> Any:
        seen.append(violation)
        return "raise" if violation.error.code == "E8" else "feedback"

    async def decide_later(violation: RuleViolation) -> Any:
        return decide(violation)

    agent, model = reading(
        executed,
        ("read", {"value": "secret"}),
        ("delete", {}),
        on_rule_violation=decide if sync else decide_later,
    )
    context = {"tool_rules": RULES}
    with pytest.raises(ToolNotAllowedError):
        await agent.run_async("hi", context)
    assert len(model.calls) == 2
    first, second = seen
    assert (first.tool, first.error.code, first.agent) == ("read", "E14", "reader")
    assert (first.rule, first.layers) == ("params: read.value.maxLength", ("explicit",))
    assert json.loads(first.arguments) == {"value": "secret"}
    assert first.context is context
    assert (second.tool, second.rule) == ("delete", "deny: delete")
    assert "secret" not in repr(first)


async def test_a_policy_function_with_an_invalid_result_ends_the_run(executed: Executed) -> None:
    agent, _ = reading(executed, on_rule_violation=lambda violation: "allow")
    with pytest.raises(Exception, match='must return "feedback" or "raise", it returned \'allow\''):
        await agent.run_async("hi", {"tool_rules": RULES})
    assert executed == []


@pytest.mark.parametrize("step", [("read", {"value": "secret"}), ("delete", {})])
async def test_an_exception_of_a_policy_ends_the_run(executed: Executed, step: Any) -> None:
    def decide(violation: RuleViolation) -> Any:
        raise LookupError("no such policy")

    agent, model = reading(executed, step, on_rule_violation=decide)
    with pytest.raises(LookupError, match="no such policy"):
        await agent.run_async("hi", {"tool_rules": RULES})
    assert len(model.calls) == 1


def test_an_invalid_policy_is_an_error_at_creation() -> None:
    with pytest.raises(KantanAgentsError, match=r"\[E75\] Invalid option on_rule_violation: must be"):
        Agent("a", "x", on_rule_violation="ignore")  # type: ignore[arg-type]


@pytest.mark.parametrize("sensitive", [True, False])
async def test_every_refusal_is_on_a_span_without_arguments_when_data_is_sensitive(
    executed: Executed, traces: Any, sensitive: bool
) -> None:
    agent, _ = reading(executed, ("read", {"value": "secret"}), ("delete", {"value": "secret"}))
    config = RunConfig(trace_include_sensitive_data=sensitive)
    await agent.run_async("hi", {"tool_rules": RULES}, run_config=config)
    first, second = (span.raw["span_data"]["data"] for span in traces.spans(name="tool_refused"))
    recorded = first.pop("arguments", None)
    assert json.loads(recorded or "null") == ({"value": "secret"} if sensitive else None)
    second.pop("arguments", None)
    assert first == {
        "tool": "read",
        "code": "E14",
        "rule": "params: read.value.maxLength",
        "layers": ["explicit"],
        "agent": "reader",
        "answer": "feedback",
    }
    assert (second["tool"], second["code"], second["rule"]) == ("delete", "E8", "deny: delete")
    if not sensitive:
        assert "secret" not in json.dumps([span.raw for span in traces.spans()], default=str)


async def test_the_agents_policy_applies_under_the_sdks_own_runner(executed: Executed) -> None:
    agent, _ = reading(executed, on_rule_violation="raise")
    with pytest.raises(Exception, match="E14"):
        await agents.Runner.run(agent.sdk_agent, "hi", context={"tool_rules": RULES})
    assert executed == []


def guarded_bash() -> Any:
    def bash(command: str) -> str:
        """Run a command."""
        return "ok"

    return bash


@pytest.mark.parametrize(
    ("rules", "hint"),
    [
        ({"deny": ["bash(rm:*)"]}, "The rule is deny: bash(rm:*). Other calls of the tool may be allowed."),
        (
            {"deny": ["bash(rm:*)"], "allow": ["bash(git:*)", "bash(rm:*)"]},
            "The rule is deny: bash(rm:*). Calls that are allowed: bash(git:*), bash(rm:*).",
        ),
        (
            {"allow": ["bash(git:*)"]},
            "The rule is: allow has no entry for it. Calls that are allowed: bash(git:*).",
        ),
        ({"params": {"bash": {"command": {"enum": ["ls", "pwd"]}}}}, "The rule is enum: 'ls', 'pwd'."),
        (
            {"params": {"bash": {"command": {"type": ["null", "integer"]}}}},
            "The rule is type: 'null', 'integer'.",
        ),
        (
            {"params": {"bash": {"command": {"maximum": 5}}}},
            "The rule is about values of another type than the tool takes, so every value is refused.",
        ),
    ],
)
async def test_a_refused_call_names_its_rule_and_what_is_allowed(rules: Any, hint: str) -> None:
    model = calls(("bash", {"command": "rm x"}))
    await Agent("a", "x", tools=[guarded_bash()], model=model).run_async("hi", {"tool_rules": rules})
    first, second = outputs(model)[0].split("\n")
    assert first.startswith("[kantan-agents][E")
    assert second == hint


@pytest.mark.parametrize(
    "rules",
    [
        {"deny": ["bash(rm:*)"], "allow": [f"bash(command {'x' * 500} {n})" for n in range(1000)]},
        {"deny": [f"bash(rm {'x' * 10_000})"]},
        {"params": {"bash": {"command": {"enum": [f"{'x' * 500}{n}" for n in range(1000)]}}}},
        {"params": {"bash": {"command": {"pattern": "a" * 5000}}}},
    ],
)
async def test_a_hint_is_never_long(rules: Any) -> None:
    command = "rm " + "x" * 10_000
    model = calls(("bash", {"command": command}))
    await Agent("a", "x", tools=[guarded_bash()], model=model).run_async("hi", {"tool_rules": rules})
    assert outputs(model)[0].startswith("[kantan-agents][E")
    assert len(outputs(model)[0]) < 5000
