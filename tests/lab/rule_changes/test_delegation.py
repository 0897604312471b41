"""Delegated runs inherit rules as limits, also the rules that are asked about."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kantan_agents import Agent, what_if
from kantan_agents.errors import NoRecordedCallsError
from kantan_agents.traces.capture import TraceCalls
from tests.agent.delegation.cast import Cast, boss, definition, delegate, say, use
from tests.lab.rule_changes.recorded import Recording, decision, predicted
from tests.sizes import size

NAMES = ("read", "write", "bash", "bash(git:*)", "Task", "Task(Worker)", "ta*")
ENTRIES = st.none() | st.lists(st.sampled_from(NAMES), max_size=3)
RULES = st.fixed_dictionaries({"allow": st.just("*") | ENTRIES, "deny": ENTRIES})


def family(worker_tools: Any = "*", by_task: Any = None) -> Agent[Any]:
    """A boss that delegates to a worker, which delegates to a helper; each calls tools before and after."""
    cast = Cast(
        boss=[
            use("read", "b1", path="a"),
            delegate("worker", call_id="b2"),
            use("write", "b3", path="b"),
            say("ok"),
        ],
        worker=[
            use("bash", "w1", command="git log"),
            delegate("helper", call_id="w2"),
            use("bash", "w3", command="rm x"),
            say("ok"),
        ],
        helper=[use("read", "h1", path="c"), use("bash", "h2", command="git diff"), say("ok")],
    )
    files = (definition("worker", tools=worker_tools), definition("helper"))
    return boss(cast, *files, task={"tool_rules": by_task}, tool_providers=None)


@settings(max_examples=size(12, 6), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(RULES, RULES, st.sampled_from(["*", ("read", "bash", "Task"), ("bash(git:*)", "Task")]))
async def test_what_if_gives_the_decisions_of_a_family_of_runs(
    recorded: Recording, before: Any, after: Any, worker_tools: Any
) -> None:
    by_task = {"deny": ["write"]}
    first = await recorded.run(family(worker_tools, by_task), before)
    second = await recorded.run(family(worker_tools, by_task), after)
    made, remade = recorded.calls(first), {call.call_id: call for call in recorded.calls(second)}
    answer = recorded.ask(after, first)
    assert {call.reason for call in answer.unjudged} <= {"its agent has the tool, but not in that turn"}
    # Calls of a run that would not have begun, or begin only now, are in one of them alone.
    unjudged = {call.call_id for call in answer.unjudged}
    both = {
        call_id: is_allowed
        for call_id, is_allowed in predicted(answer, made).items()
        if call_id in remade and call_id not in unjudged
    }
    assert {call_id: decision(remade[call_id]).is_allowed for call_id in both} == both


async def test_a_limit_follows_the_rules_of_the_run_above(recorded: Recording) -> None:
    trace = await recorded.run(family())
    answer = recorded.ask({"deny": ["read"]}, trace)
    flips = {flip.call_id: flip for flip in answer.flips}
    assert flips.keys() == {"b1", "h1"}
    assert flips["h1"].after.rule == "deny: read"
    assert flips["h1"].after.layers == ("explicit",)
    narrowed = recorded.ask({"deny": ["read"]}, trace, layer="base")
    assert {flip.call_id for flip in narrowed.flips} == {"b1", "h1"}


async def test_runs_inside_a_refused_delegation_are_marked(recorded: Recording) -> None:
    trace = await recorded.run(family())
    answer = recorded.ask({"deny": ["Task(worker)", "bash"]}, trace)
    first = {flip.call_id: flip.is_first for flip in answer.flips}
    assert first == {"b2": True, "w1": False, "w3": False, "h2": False}
    assert answer.after_flip == 6  # b3, and the calls of both runs inside b2


async def test_the_limit_of_a_subagent_file_stays(recorded: Recording) -> None:
    trace = await recorded.run(family(worker_tools=("read", "Task")), {"deny": ["bash"]})
    answer = recorded.ask({}, trace)
    refused = {call.call_id for call in recorded.calls(trace) if not decision(call).is_allowed}
    assert refused == {"w1", "w3", "h2"}
    assert not answer.flips  # the file of the worker allows no bash either


async def test_rules_without_those_of_the_run_above_are_not_judged(recorded: Recording) -> None:
    trace = await recorded.run(family())
    (calls,) = [one for one in recorded.store.recorded_calls() if one.trace_id == trace]
    alone = TraceCalls(trace, [run for run in calls.runs if run.agent != "boss"])
    with pytest.raises(NoRecordedCallsError, match="none of 5 calls can be judged: the rules of the run"):
        what_if({}, [alone])
