"""Children that fail, are cancelled, take too long, or wait for an approval."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import agents
import pytest

from kantan_agents import Agent, AgentDefinition, get_context_with_tool_rules, task_tool
from kantan_agents.core.events import RunCancelled
from kantan_agents.errors import (
    AgentNotFoundError,
    BudgetExceededError,
    DeadlineExceededError,
    DelegatedAgentError,
    DelegationCycleError,
    DelegationLimitError,
    ToolNotAllowedError,
)
from kantan_agents.middleware import Approve, Approved, Budget, Deadline, Rejected
from tests.agent.delegation.cast import Cast, boss, definition, delegate, failing, read, say, use, write
from tests.clocks import ENOUGH, let_pass

HELPER = definition("helper")


async def test_a_failing_child_returns_its_error_as_the_tool_result() -> None:
    cast = Cast(boss=[delegate("helper"), say("done")], helper=[failing(RuntimeError("no model"))])
    context = await boss(cast, HELPER).run_async("Go")
    assert cast.results("boss") == ["[kantan-agents][E35] Agent failed: helper: RuntimeError: no model"]
    assert context["result"].final_output == "done"


async def test_on_failure_raise_ends_the_parent_run() -> None:
    cast = Cast(boss=[delegate("helper"), say("never")], helper=[failing(RuntimeError("no model"))])
    context = {"a": 1}
    with pytest.raises(DelegatedAgentError) as caught:
        await boss(cast, HELPER, task={"on_failure": "raise"}).run_async("Go", context)
    assert (caught.value.agent, caught.value.code) == ("helper", "E35")
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert caught.value.kantan_run.agent.name == "boss"  # type: ignore[attr-defined]
    assert context["result"] is None


async def test_a_failure_two_levels_down_is_reported_one_level_up() -> None:
    cast = Cast(
        boss=[delegate("lead"), say("done")],
        lead=[delegate("helper"), say("went on without it")],
        helper=[failing(RuntimeError("no model"))],
    )
    await boss(cast, definition("lead"), HELPER).run_async("Go")
    assert cast.results("boss") == ["went on without it"]


async def test_a_file_without_a_prompt_returns_an_error_as_the_tool_result() -> None:
    cast = Cast(boss=[delegate("empty"), say("done")])
    await boss(cast, AgentDefinition("empty", "has no prompt")).run_async("Go")
    assert cast.results("boss")[0].startswith("[kantan-agents][E35] Agent failed: empty: [kantan-agents][E2]")


async def test_an_unknown_model_returns_an_error_as_the_tool_result() -> None:
    cast = Cast(boss=[delegate("odd"), say("done")])
    await boss(cast, definition("odd", model="no-such-model")).run_async("Go")
    assert "[E19] Model not found: no-such-model" in cast.results("boss")[0]


async def test_an_unknown_agent_name_returns_the_available_names() -> None:
    cast = Cast(boss=[delegate("helpr"), say("done")])
    await boss(cast, HELPER, definition("other")).run_async("Go")
    assert cast.results("boss") == ["[kantan-agents][E32] Agent not found: helpr (available: helper, other)"]


async def test_a_raised_rule_violation_in_a_child_is_returned_to_the_parent() -> None:
    cast = Cast(boss=[delegate("helper"), say("done")], helper=[use("write", path="a"), say("never")])
    agent = boss(cast, HELPER, on_rule_violation="raise")
    await agent.run_async("Go", get_context_with_tool_rules({"deny": ["write"]}))
    assert cast.results("boss") == [
        "[kantan-agents][E35] Agent failed: helper: [kantan-agents][E8] Tool is not allowed: write"
    ]


async def test_parent_rules_that_become_invalid_during_the_run_fail_the_child() -> None:
    context = get_context_with_tool_rules({"deny": []})

    def break_them() -> str:
        """Make the rules invalid."""
        context["tool_rules"]["deny"] = "write"
        return "broken"

    cast = Cast(boss=[delegate("helper"), say("done")], helper=[use("break_them"), say("never")])
    tools = [break_them, write, task_tool([HELPER])]
    with pytest.raises(Exception, match="E20"):
        await Agent("boss", "You are boss.", model=cast, tools=tools).run_async("Go", context)
    assert len(cast.parts["helper"].calls) == 1


async def test_exceeding_max_turns_of_the_file_is_a_failure() -> None:
    looping = definition("looping", max_turns=2)
    steps = [use("read", f"t{number}", path="a") for number in range(5)]
    cast = Cast(boss=[delegate("looping"), say("done")], looping=steps)
    await boss(cast, looping).run_async("Go")
    assert "MaxTurnsExceeded" in cast.results("boss")[0]
    assert len(cast.parts["looping"].calls) == 2


async def wait_for_ever() -> str:
    """Wait."""
    await asyncio.Event().wait()
    return "never"


async def test_cancelling_a_run_cancels_its_delegations() -> None:
    working = asyncio.Event()
    ended: list[str] = []

    async def work() -> str:
        """Work until somebody ends it."""
        working.set()
        try:
            return await wait_for_ever()
        finally:
            ended.append("work")

    cast = Cast(
        boss=[delegate("lead"), say("never")],
        lead=[delegate("helper"), say("never")],
        helper=[use("work"), say("never")],
    )
    tools = [agents.function_tool(work), task_tool([definition("lead"), HELPER])]
    agent = Agent("boss", "You are boss.", model=cast, tools=tools)
    events: list[Any] = []
    agent.subscribe(events.append)
    context: dict[str, Any] = {"a": 1}
    task = asyncio.create_task(agent.run_async("Go", context))
    await working.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["work"]
    assert context["result"] is None
    cancelled = [event.agent for event in events if isinstance(event, RunCancelled)]
    assert cancelled == ["helper", "lead", "boss"]


async def test_leaving_a_stream_early_ends_its_delegations() -> None:
    ended: list[str] = []

    async def work() -> str:
        """Work until somebody ends it."""
        try:
            return await wait_for_ever()
        finally:
            ended.append("work")

    cast = Cast(boss=[delegate("helper"), say("never")], helper=[use("work"), say("never")])
    tools = [agents.function_tool(work), task_tool([HELPER])]
    agent = Agent("boss", "You are boss.", model=cast, tools=tools)
    async with agent.stream("Go") as run:
        async for event in run:
            if event.type == "tool_call_started" and event.agent == "helper":
                break
    assert ended == ["work"]


async def test_the_deadline_of_the_parent_applies_to_the_child() -> None:
    ended: list[str] = []

    async def work() -> str:
        """Work until somebody ends it."""
        try:
            let_pass()
            return await wait_for_ever()
        finally:
            ended.append("work")

    cast = Cast(boss=[delegate("helper"), say("never")], helper=[use("work"), say("never")])
    tools = [agents.function_tool(work), task_tool([HELPER], middleware=[])]
    agent = Agent("boss", "You are boss.", model=cast, tools=tools, middleware=[Deadline(ENOUGH)])
    with pytest.raises(DeadlineExceededError):
        await agent.run_async("Go")
    assert ended == ["work"]


async def test_a_deadline_of_the_children_is_reported_to_the_parent() -> None:
    cast = Cast(boss=[delegate("helper"), say("done")], helper=[use("wait_for_ever"), say("never")])
    tools = [agents.function_tool(wait_for_ever), task_tool([HELPER], middleware=[Deadline(0.1)])]
    await Agent("boss", "You are boss.", model=cast, tools=tools).run_async("Go")
    assert "[E82]" in cast.results("boss")[0]


async def test_a_budget_counts_the_usage_of_children() -> None:
    cast = Cast(
        boss=[delegate("helper"), say("never")],
        helper=[use("read", "t1", path="a"), use("read", "t2", path="b"), say("never")],
    )
    budget = Budget(max_model_calls=3)
    with pytest.raises(BudgetExceededError):
        await boss(cast, HELPER, middleware=[budget]).run_async("Go")
    assert budget.used().model_calls == 3


async def test_a_tool_that_waits_for_an_approval_is_a_failure() -> None:
    asking = agents.function_tool(write, needs_approval=True)
    cast = Cast(boss=[delegate("helper"), say("done")], helper=[use("write", path="a"), say("never")])
    tools = [asking, task_tool([HELPER])]
    await Agent("boss", "You are boss.", model=cast, tools=tools).run_async("Go")
    reason = "a call of write needs an approval, which a delegated run cannot wait for"
    assert cast.results("boss") == [f"[kantan-agents][E35] Agent failed: helper: {reason}"]


async def test_approve_middleware_of_the_parent_also_asks_for_calls_of_the_child() -> None:
    asked: list[str] = []

    async def decide(call: Any) -> Any:
        asked.append(f"{call.agent} {call.tool}")
        return Approved() if call.tool == "read" else Rejected("not that")

    cast = Cast(
        boss=[delegate("helper"), say("done")],
        helper=[use("read", "t1", path="a"), use("write", "t2", path="a"), say("ok")],
    )
    await boss(cast, HELPER, middleware=[Approve(["read", "write"], decide)]).run_async("Go")
    assert asked == ["helper read", "helper write"]
    read_it, rejected = cast.results("helper")
    assert read_it == "text of a"
    assert "not that" in rejected


@pytest.mark.parametrize(
    "error",
    [
        AgentNotFoundError(name="x", available=["a", "b"]),
        DelegationCycleError(agent="a", chain=["b", "a"]),
        DelegationLimitError(agent="a", limit="enough"),
        DelegatedAgentError(agent="a", reason="why"),
    ],
)
def test_the_errors_can_be_pickled(error: Any) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert again.data == error.data


def test_the_message_shortens_a_long_list_of_agents() -> None:
    error = AgentNotFoundError(name="x", available=[f"agent{number}" for number in range(50)])
    assert "and 30 more" in str(error)
    assert len(error.available) == 50


async def test_a_refused_tool_call_does_not_fail_the_child() -> None:
    cast = Cast(boss=[delegate("reader"), say("done")], reader=[use("write", path="a"), say("could not")])
    await boss(cast, definition("reader", tools=("read",))).run_async("Go")
    assert cast.results("boss") == ["could not"]
    assert cast.results("reader")[0].startswith(str(ToolNotAllowedError(tool_name="write")))
    assert read("a") == "text of a"


class Unspeakable(Exception):
    """An error whose ``__str__`` and attributes raise."""

    def __str__(self) -> str:
        raise RuntimeError("never")

    @property
    def run_data(self) -> Any:
        raise RuntimeError("never")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (Unspeakable(), "[E35] Agent failed: helper"),
        (RuntimeError("half \ud800 of it"), "half \N{REPLACEMENT CHARACTER} of it"),
    ],
)
async def test_an_error_that_cannot_be_printed_is_still_reported(error: Exception, said: str) -> None:
    async def fail(run: Any, call_next: Any) -> None:
        raise error

    cast = Cast(boss=[delegate("helper"), say("done")])
    context = await boss(cast, HELPER, task={"middleware": [fail]}).run_async("Go")
    assert said in cast.results("boss")[0]
    assert context["result"].final_output == "done"
