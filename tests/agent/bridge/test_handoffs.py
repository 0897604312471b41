"""Hand-offs between Agents, SDK agents and ``agents.handoff`` objects."""

from __future__ import annotations

from typing import Any

import agents
import pytest
from pydantic import BaseModel

from kantan_agents import Agent, Prompt
from kantan_agents.testing import (
    OfflineServer,
    ScriptedModel,
    ScriptedToolCall,
    assistant_message,
    function_call,
)


class Out(BaseModel):
    x: int


def transfer(name: Any, call_id: Any = "c1") -> Any:
    return [function_call(f"transfer_to_{name}", {}, call_id=call_id)]


def say(text: Any) -> Any:
    return [assistant_message(text)]


async def test_a_target_renders_its_own_instructions_from_the_same_context() -> None:
    model = ScriptedModel([transfer("billing"), say("done")])
    billing = Agent("billing", "Bill {{ $ctx.who }}", model=model)
    triage = Agent("triage", "Sort {{ $ctx.who }}", model=model, handoffs=[billing])
    context = await triage.run_async("hi", {"who": "Bo"})
    assert [c.system_instructions for c in model.calls] == ["Sort Bo", "Bill Bo"]
    assert context["result"].last_agent.owner is billing


@pytest.mark.parametrize("kind", ["sdk agent", "handoff to sdk agent", "handoff to ours"])
async def test_sdk_agents_and_handoff_objects_are_targets(kind: Any) -> None:
    model = ScriptedModel([transfer("billing"), say("done")])
    ours = Agent("billing", "Bill {{ $ctx.who }}", model=model)
    sdk = agents.Agent(name="billing", instructions="Bill Bo", model=model)
    target = {
        "sdk agent": sdk,
        "handoff to sdk agent": agents.handoff(sdk),
        "handoff to ours": agents.handoff(ours.sdk_agent),
    }[kind]
    context = await Agent("triage", "Sort", model=model, handoffs=[target]).run_async("hi", {"who": "Bo"})
    assert model.last_call.system_instructions == "Bill Bo"
    assert context["result"].final_output == "done"


async def test_an_sdk_agent_may_hand_off_to_an_agent_of_this_library() -> None:
    model = ScriptedModel([transfer("ours"), say("done")])
    ours = Agent("ours", "For {{ $ctx.who }}", model=model)
    sdk = agents.Agent(name="sdk", instructions="x", model=model, handoffs=[ours.sdk_agent])
    result = await agents.Runner.run(sdk, "hi", context={"who": "Bo"})
    assert (result.final_output, model.last_call.system_instructions) == ("done", "For Bo")


async def test_cycles_work_and_the_starting_agent_is_rendered_again() -> None:
    model = ScriptedModel([transfer("b"), transfer("a", "c2"), say("done")])
    a = Agent("a", "A {{ $ctx.who }}", model=model)
    b = Agent("b", "B {{ $ctx.who }}", model=model, handoffs=[a])
    a.handoffs.append(b)
    context = await a.run_async("hi", {"who": "Bo"})
    assert [c.system_instructions for c in model.calls] == ["A Bo", "B Bo", "A Bo"]
    assert context["result"].last_agent.owner is a
    repr(context["result"])


async def test_a_cycle_of_the_sdks_agents_may_be_replaced_by_an_equal_one() -> None:
    def cycle() -> agents.Agent[Any]:
        one = agents.Agent[Any]("one")
        one.handoffs.append(agents.Agent[Any]("two", handoffs=[one]))
        return one

    first, second = (
        Agent(name, name, model=ScriptedModel([say("ok")] * 2), handoffs=[cycle()]) for name in "ab"
    )
    await first.run_async("hi")
    await second.run_async("hi")
    options = first.recorded_options
    first.handoffs[:] = second.handoffs
    await first.run_async("hi")
    assert first.recorded_options == options  # the hand-offs are equal, and not compared with `==`
    assert first.sdk_agent.handoffs == second.handoffs


async def test_targets_linked_by_another_agents_run_are_followed() -> None:
    a, b, c, d = (Agent(name, name, model=ScriptedModel([say("ok")])) for name in "abcd")
    a.handoffs.append(b)
    await a.run_async("hi")
    b.handoffs.append(c)
    await b.run_async("hi")  # links c; from the view of a, nothing has changed
    c.handoffs.append(d)
    reached: agents.Agent[Any] = a.sdk_agent
    for name in "bcd":
        (handoff,) = reached.handoffs
        reached = handoff._agent_ref()
        assert reached.name == name


@pytest.mark.parametrize("has_it", [True, False])
async def test_handoffs_linked_in_between_are_updated_again(has_it: bool) -> None:
    a, b, c = (Agent(name, name, model=ScriptedModel([])) for name in "abc")
    a.handoffs, b.handoffs = [b], [c] if has_it else []
    _ = a.sdk_agent
    b.handoffs[:] = [] if has_it else [c]
    _ = b.sdk_agent  # a is not notified
    b.handoffs[:] = [c] if has_it else []
    (handoff,) = a.sdk_agent.handoffs
    assert [each.agent_name for each in handoff._agent_ref().handoffs] == (["c"] if has_it else [])


async def test_a_removed_target_is_no_longer_offered() -> None:
    b, c = (Agent(name, name, model=ScriptedModel([])) for name in "bc")
    model = ScriptedModel([say("1"), say("2"), say("3")])
    a = Agent("a", "A", model=model, handoffs=[b])
    for handoffs in ([b], [b, c], [c]):
        a.handoffs[:] = handoffs
        await a.run_async("hi")
    assert [[handoff.agent_name for handoff in call.handoffs] for call in model.calls] == [
        ["b"],
        ["b", "c"],
        ["c"],
    ]


async def test_an_agent_may_hand_off_to_itself() -> None:
    model = ScriptedModel([transfer("a"), say("done")])
    a = Agent("a", "A", model=model)
    a.handoffs.append(a)
    assert (await a.run_async("hi"))["result"].final_output == "done"


async def test_a_changed_handoff_list_is_seen_by_the_next_run() -> None:
    model = ScriptedModel([say("1"), say("2"), say("3")])
    a, b = Agent("a", "A", model=model), Agent("b", "B", model=model)
    await a.run_async("hi")
    a.handoffs.append(b)
    await a.run_async("hi")
    a.handoffs.clear()
    await a.run_async("hi")
    shown = [[h.tool_name for h in call.handoffs] for call in model.calls]
    assert shown == [[], ["transfer_to_b"], []]


async def test_a_chain_of_a_thousand_agents_does_not_recurse() -> None:
    model = ScriptedModel([say("x")])
    last = Agent("last", "x", model=model)
    for number in range(1000):
        last = Agent(f"n{number}", "x", model=model, handoffs=[last])
    assert (await last.run_async("hi"))["result"].final_output == "x"


@pytest.mark.parametrize(("own", "expected"), [(None, "theirs"), ("mine", "mine")])
async def test_the_targets_output_dest_counts_when_the_starting_agent_has_none(
    own: Any, expected: Any
) -> None:
    model = ScriptedModel([transfer("b"), say('{"x": 1}')])
    b = Agent("b", "B", model=model, output_type=Out, output_dest="theirs")
    a = Agent("a", "A", model=model, handoffs=[b], output_dest=own)
    context = await a.run_async("hi")
    assert context[expected] == {"x": 1}
    assert {"mine", "theirs"} & set(context) == {expected}


async def test_a_targets_prompt_is_recorded_once_on_a_span(traces: Any) -> None:
    model = ScriptedModel([transfer("b"), [function_call("tool", {}, call_id="c2")], say("done")])

    def tool() -> str:
        """Do it."""
        return "ok"

    b = Agent("b", Prompt("billing", "v7", "B"), model=model, tools=[tool])
    context = await Agent("a", "A", model=model, handoffs=[b]).run_async("hi")
    (trace,) = traces.traces()
    (span,) = traces.spans(name="agent_run")
    data = span.raw["span_data"]["data"]
    assert (data["agent_name"], data["prompt_version"]) == ("b", "v7")
    assert data["agent_run_id"] == trace.metadata["agent_run_id"]
    assert trace.metadata["agent_name"] == "a"
    assert context["result"].final_output == "done"


@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_a_handoff_between_agents_with_different_models_works_over_http(api: Any) -> None:
    with OfflineServer([ScriptedToolCall("transfer_to_b"), "done"]) as server:
        b = Agent("b", "B", model=server.bundle("model-b", api=api))
        a = Agent("a", "A", model=server.bundle("model-a", api=api), handoffs=[b])
        assert (await a.run_async("hi"))["result"].final_output == "done"
        assert [request.model for request in server.requests] == ["model-a", "model-b"]


async def test_a_target_reached_through_its_sdk_agent_has_its_own_targets() -> None:
    model = ScriptedModel([transfer("b"), transfer("c", "c2"), say("done")])
    c = Agent("c", "C", model=model)
    b = Agent("b", "B", model=model, handoffs=[c])
    a = Agent("a", "A", model=model, handoffs=[agents.handoff(b.sdk_agent)])
    assert (await a.run_async("hi"))["result"].last_agent.owner is c

    alone = ScriptedModel([transfer("c"), say("done")])
    d = Agent("d", "D", model=alone, handoffs=[Agent("c", "C", model=alone)])
    assert (await agents.Runner.run(d.sdk_agent, "hi", context={})).final_output == "done"
