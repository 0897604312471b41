"""A change of an agent that a run reaches is made wherever it is reached, in copies."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import agents
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import Agent, AgentDefinition, Prompt, task_tool
from kantan_agents.errors import InvalidChangeError, NoChangeError, ReplayBudgetError
from kantan_agents.lab import Change, Experiment
from kantan_agents.lab.experiment.reached import Reached
from kantan_agents.lab.replay.changed_agent import changed_agent, hash_of
from kantan_agents.testing import OfflineServer, ScriptedModel, ScriptedToolCall
from tests.lab.replay.cohorts import Recorder, recording

Call = ScriptedToolCall
Make = Callable[[Any], Agent[Any]]
TRANSFER = Call("transfer_to_b", {})
ASK = Call("b", {"input": "x"})
DELEGATE = Call("Task", {"description": "d", "prompt": "p", "subagent_type": "b"})


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Recorder]:
    with recording(tmp_path / "traces.db") as recorder:
        yield recorder


def inner(model: Any, **options: Any) -> Agent[Any]:
    return Agent("b", Prompt("pb", "v1", "I am b"), model=model, **options)


def outer(model: Any, **options: Any) -> Agent[Any]:
    return Agent("a", "I am a", model=model, **options)


def through_sdk_agent(model: Any) -> Agent[Any]:
    middle = agents.Agent("m", instructions="I am m", model=inner(model).sdk_agent.model)
    middle.handoffs = [inner(model)]
    return outer(model, handoffs=[middle])


def handing_back(model: Any) -> Agent[Any]:
    first, second = outer(model), inner(model)
    first.handoffs.append(second)
    second.handoffs.append(first)
    return first


def chosen_at_run_time(model: Any) -> Agent[Any]:
    target = inner(model)

    async def choose(_context: Any, _arguments: str) -> Any:
        return target

    dynamic: Any = agents.Handoff("transfer_to_b", "b", {}, choose, "b", strict_json_schema=False)
    return outer(model, handoffs=[dynamic], tools=[target.as_tool("ask_b")])


def tool_of_a_tool(model: Any) -> Agent[Any]:
    middle = Agent("m", "I am m", model=model, tools=[inner(model)])
    return outer(model, tools=[middle])


def tool_that_hands_over(model: Any) -> Agent[Any]:
    middle = agents.Agent("m", instructions="I am m", model=inner(model).sdk_agent.model)
    middle.handoffs = [agents.handoff(inner(model))]
    return outer(model, tools=[middle])


def delegating(model: Any) -> Agent[Any]:
    helper = AgentDefinition(name="b", description="b", system_prompt="I am b")
    return outer(model, tools=[task_tool([helper])])


WAYS: dict[str, tuple[Make, dict[str, Any]]] = {
    "hand-off": (lambda model: outer(model, handoffs=[inner(model)]), {"a": TRANSFER}),
    "hand-off of the SDK": (
        lambda model: outer(model, handoffs=[agents.handoff(inner(model))]),
        {"a": TRANSFER},
    ),
    "hand-off to its agent of the SDK": (
        lambda model: outer(model, handoffs=[inner(model).sdk_agent]),
        {"a": TRANSFER},
    ),
    "through an agent of the SDK": (
        through_sdk_agent,
        {"a": Call("transfer_to_m", {}), "m": TRANSFER},
    ),
    "agents that hand back": (handing_back, {"a": TRANSFER}),
    "hand-off that decides at run time": (chosen_at_run_time, {"a": TRANSFER}),
    "tool": (lambda model: outer(model, tools=[inner(model)]), {"a": ASK}),
    "tool of the agent's as_tool": (
        lambda model: outer(model, tools=[inner(model).as_tool("b")]),
        {"a": ASK},
    ),
    "tool of a tool": (tool_of_a_tool, {"a": Call("m", {"input": "x"}), "m": ASK}),
    "tool that hands over": (tool_that_hands_over, {"a": Call("m", {"input": "x"}), "m": TRANSFER}),
    "delegation": (delegating, {"a": DELEGATE}),
}


def replies(first: dict[str, Any]) -> Callable[[Any], Any]:
    """Return a model in which each agent makes its call first, and then says who it is."""

    def reply(request: Any) -> Any:
        name = str(request.system_instructions).removeprefix("I am ")
        outputs = [item for item in request.input if item.get("type") == "function_call_output"]
        done = len(outputs) if name == "a" else sum("m" in str(item["output"]) for item in outputs) - 1
        return first[name] if name in first and done < 1 else f"from {name}"

    return reply


@pytest.mark.parametrize("way", WAYS)
def test_a_change_reaches_its_agent_in_every_way_that_the_run_does(db: Recorder, way: str) -> None:
    make, first = WAYS[way]
    with OfflineServer(replies(first)) as server:
        agent = make(server.bundle("old"))
        trace_id = db.run(agent)
        before = [request.model for request in server.requests]
        asked = [str(request.system_instructions) for request in server.requests]
        assert "I am b" in asked
        server.requests.clear()
        experiment = db.replay([trace_id], agent, Change.model(server.bundle("new")).of("b"))
        assert experiment.runs[0].status == "same", experiment.runs[0]
        models = [(str(one.system_instructions), one.model) for one in server.requests]
        assert models == [(text, "new" if text == "I am b" else "old") for text in asked]
        assert experiment.changes == ("model=new of b",)
        server.requests.clear()
        db.run(agent)
        assert [request.model for request in server.requests] == before


def test_a_changed_prompt_of_a_reached_agent_is_sent(db: Recorder) -> None:
    for make, first in (WAYS["tool"], WAYS["agents that hand back"], WAYS["delegation"]):
        with OfflineServer(replies(first)) as server:
            trace_id = db.run(make(server.bundle("m")))
            server.requests.clear()
            change = Change.prompt("I am the new b").of("b")
            (run,) = db.replay([trace_id], make(server.bundle("m")), change).runs
            texts = [str(request.system_instructions) for request in server.requests]
        assert "I am the new b" in texts
        assert "I am b" not in texts
        assert run.status in ("wording", "same")


def test_an_agent_that_is_handed_back_to_is_the_changed_one(db: Recorder) -> None:
    def make(model: Any) -> Agent[Any]:
        return handing_back(model)

    script = [TRANSFER, Call("transfer_to_a", {}), "done"]
    trace_id = db.run(make(ScriptedModel(script)))
    again = ScriptedModel(script)
    db.replay([trace_id], make(again), Change.prompt("I am the new a"))
    assert [call.system_instructions for call in again.calls] == [
        "I am the new a",
        "I am b",
        "I am the new a",
    ]


def test_changes_of_several_agents_are_made_together(db: Recorder) -> None:
    agent = outer(ScriptedModel([]), handoffs=[inner(ScriptedModel([]))])
    changes = [
        Change.settings(temperature=0.1),
        Change.settings(temperature=0.2).of("b"),
        Change.prompt("B").of("b"),
    ]
    changed = changed_agent(Reached(agent, {}), changes).agent
    (other,) = changed.handoffs
    assert changed.sdk_agent.model_settings.temperature == 0.1
    assert (other.sdk_agent.model_settings.temperature, other.instructions.text) == (0.2, "B")
    with pytest.raises(InvalidChangeError, match=r"temperature of 'b'.*twice"):
        changed_agent(Reached(agent, {}), [changes[1], changes[1]])
    with pytest.raises(InvalidChangeError, match="twice"):
        changed_agent(Reached(agent, {}), [changes[0], changes[0].of("a")])


def test_a_child_that_inherits_the_changed_model_keeps_it(db: Recorder) -> None:
    make, first = WAYS["delegation"]
    with OfflineServer(replies(first)) as server:
        trace_id = db.run(make(server.bundle("old")))
        server.requests.clear()
        new = server.bundle("new")
        changes: Any = [Change.model(new), Change.model(new).of("b")]
        experiment: Experiment = db.replay([trace_id], make(server.bundle("old")), changes)
        assert {request.model for request in server.requests} == {"new"}
    assert experiment.runs[0].status == "same"


def delegations_of(agent: Agent[Any], *definitions: AgentDefinition) -> Reached:
    return Reached(agent, {id(agent.sdk_agent.as_given(tool)): definitions for tool in agent.tools})


HELPER = AgentDefinition(name="helper", description="h", system_prompt="Help")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda: Change.model("gpt-5").of("bb"), r"'a' does not reach.*reaches 'a', 'b', 'c'.*mean 'b'"),
        (lambda: Change.model("gpt-5").of("c"), "'c' is an agent of the SDK"),
        (lambda: Change.tool("t", description="x").of("b"), r"tool 't' of 'b'.*no function tool"),
        (lambda: Change.rules({"deny": ["t"]}).of("b"), "whole run"),
        (lambda: Change.middleware().of("b"), "whole run"),
    ],
)
def test_a_change_of_another_agent_that_cannot_be_made_says_why(change: Any, text: str) -> None:
    plain = agents.Agent("c", instructions="c")
    agent = outer(ScriptedModel([]), handoffs=[inner(ScriptedModel([])), plain])
    with pytest.raises(InvalidChangeError, match=text):
        changed_agent(Reached(agent, {}), [change()])


def test_agents_of_delegations_are_among_those_that_are_reached() -> None:
    agent = outer(ScriptedModel([]), tools=[task_tool([HELPER])])
    with pytest.raises(InvalidChangeError, match="reaches 'a', 'helper'; did you mean 'helper'"):
        changed_agent(delegations_of(agent, HELPER), [Change.prompt("x").of("helpr")])
    assert delegations_of(agent, HELPER).with_prompt("helper") == {"helper"}


def test_a_change_of_another_agent_that_changes_nothing_is_an_error() -> None:
    agent = outer(ScriptedModel([]), handoffs=[inner(ScriptedModel([]))], tools=[task_tool([HELPER])])
    for name, text in (("b", "I am b"), ("helper", "Help")):
        with pytest.raises(NoChangeError, match=f"prompt of '{name}'"):
            changed_agent(delegations_of(agent, HELPER), [Change.prompt(text).of(name)])


def test_a_tool_that_the_sdk_has_made_is_refused_by_name() -> None:
    middle = agents.Agent("m", instructions="m", handoffs=[inner(ScriptedModel([]))])
    agent = outer(ScriptedModel([]), tools=[middle.as_tool("ask_m", "Ask m.")])
    with pytest.raises(InvalidChangeError, match=r"'ask_m' of the agent 'm'.*tools=\[\.\.\.\]"):
        changed_agent(Reached(agent, {}), [Change.prompt("x").of("b")])


def test_what_was_set_on_a_tool_and_a_hand_off_is_kept() -> None:
    tool = inner(ScriptedModel([])).as_tool("b", "Ask b.", needs_approval=True)
    tool.description = "Ask b about it."
    handoff = agents.handoff(
        inner(ScriptedModel([])), tool_name_override="give", input_filter=lambda data: data
    )
    agent = outer(ScriptedModel([]), tools=[tool], handoffs=[handoff])
    changed = changed_agent(Reached(agent, {}), [Change.prompt("x").of("b")]).agent
    (new_tool,) = changed.tools
    (new_handoff,) = changed.handoffs
    assert (new_tool.description, new_tool.needs_approval) == ("Ask b about it.", True)  # type: ignore[union-attr]
    assert (new_handoff.tool_name, new_handoff.input_filter) == ("give", handoff.input_filter)
    gc.collect()
    assert new_handoff._agent_ref() is not None
    assert agent.handoffs == [handoff]


def test_a_prompt_of_another_agent_may_only_read_values_that_its_runs_have_read(db: Recorder) -> None:
    def make(model: ScriptedModel) -> Agent[Any]:
        other = Agent("b", "Hi {{ $ctx.user }}", model=model)
        return outer(model, handoffs=[other])

    script = [TRANSFER, "done"]
    trace_id = db.run(make(ScriptedModel(script)), context={"user": "Aiko", "plan": "pro"})
    change = Change.prompt("{{ $ctx.user }} has {{ $ctx.plan }}").of("b")
    with pytest.raises(InvalidChangeError, match=r"'plan'.*context="):
        db.replay([trace_id], make(ScriptedModel([])), change)
    again = ScriptedModel(script)
    db.replay([trace_id], make(again), change, context={"plan": "pro"})
    assert again.calls[-1].system_instructions == "Aiko has pro"


def test_the_estimate_uses_the_price_of_the_changed_agent(db: Recorder) -> None:
    make, first = WAYS["hand-off"]
    with OfflineServer(replies(first)) as server:
        trace_id = db.run(make(server.bundle("old")))
        change = Change.model(server.bundle("new")).of("b")
        options: Any = {"prices": {"old": (0.0, 0.0), "new": (1e6, 1e6)}}
        agent = make(server.bundle("old"))
        with pytest.raises(ReplayBudgetError):
            db.replay([trace_id], agent, change, **options, max_cost=14)
        (run,) = db.replay([trace_id], agent, change, **options, max_cost=15).runs
    assert (run.before.cost, run.after.cost) == (0.0, 15.0)  # one of two calls, of 10 and 5 tokens


def test_the_hash_knows_the_agent_of_a_change() -> None:
    agent = outer(ScriptedModel([]))
    change = Change.settings(temperature=0.3)
    assert len({hash_of(agent, [one], None) for one in (change, change.of("b"), change.of("c"))}) == 3


NAMES = "abcdef"
EDGES = st.sets(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=14)


def woven(handoffs: set[tuple[str, str]], tools: set[tuple[str, str]], plain: set[str]) -> dict[str, Any]:
    """Return agents with any hand-offs between them; tools are only agents of a later letter."""
    made: dict[str, Any] = {}
    for name in reversed(NAMES):
        own = [made[two] for one, two in sorted(tools) if one == name and two > name]
        if name in plain:
            given: list[Any] = [one.as_tool() for one in own if isinstance(one, Agent)]
            made[name] = agents.Agent(name, instructions=f"I am {name}", tools=given)
        else:
            made[name] = Agent(name, f"I am {name}", model=ScriptedModel([]), tools=own)
    for one, two in sorted(handoffs):
        made[one].handoffs.append(made[two])
    return made


def shape(start: Agent[Any]) -> dict[str, Any]:
    reached = Reached(start, {}).agents
    assert len({one.name for one in reached}) == len(reached)  # an agent and its copy are never both there
    return {
        one.name: (
            isinstance(one, Agent),
            one.instructions,
            [target.name for target in one.handoffs],
            [tool.name for tool in one.tools],
        )
        for one in reached
    }


@given(EDGES, EDGES, st.sets(st.sampled_from("bcdef")), st.sampled_from(NAMES))
def test_only_the_named_agent_differs_and_only_in_the_copy(
    handoffs: set[tuple[str, str]], tools: set[tuple[str, str]], plain: set[str], name: str
) -> None:
    start = woven(handoffs, tools, plain)["a"]
    before = shape(start)
    if name not in before or not before[name][0]:
        with pytest.raises(InvalidChangeError):
            changed_agent(Reached(start, {}), [Change.prompt("new").of(name)])
        return
    changed = changed_agent(Reached(start, {}), [Change.prompt("new").of(name)]).agent
    is_own, _, *rest = before[name]
    assert shape(changed) == {**before, name: (is_own, "new", *rest)}
    assert shape(start) == before
