"""The arm is a property of the run: chosen before its trace opens, in every way to run an agent."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import pickle
import uuid
from pathlib import Path
from typing import Any

import pytest
from agents import ModelBehaviorError, ModelSettings, Runner, RunState, trace

from kantan_agents import Agent, Prompt, TraceStore, record_traces, run_of, task_tool
from kantan_agents.core.events import RunStarted
from kantan_agents.errors import MissingUnitError
from kantan_agents.lab import Arm, Case, Dataset, evaluate_async, promote, status, stop
from kantan_agents.middleware import Approve
from kantan_agents.testing import ScriptedModel, ScriptedToolCall
from kantan_agents.traces.registry import Main
from tests.agent.delegation.cast import Cast, definition, delegate, say, use
from tests.lab.rollout.trial import V1, V2, drawn, echo, rollout, shared_of, support, user

_KEYS = ("prompt_version", "rollout", "arm", "arm_share", "rollout_unit", "rollout_not_drawn")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "traces.db"
    record_traces(path)
    return path


def unit_of(agent: Agent[Any], arm: str) -> dict[str, Any]:
    """Return the context of a unit that has an arm now."""
    return next(user(n) for n in range(1_000) if drawn(agent, user(n)).metadata["arm"] == arm)


def recorded(path: Path) -> list[dict[str, Any]]:
    """Return what the traces in the file say about arms, the oldest first."""
    found = [one.metadata for one in TraceStore(path).traces()]
    return [{key: one.get(key) for key in _KEYS} for one in reversed(found)]


@pytest.mark.parametrize("arm", ["v1", "v2"])
@pytest.mark.parametrize("way", ["run_async", "run", "stream"])
async def test_each_way_to_run_uses_and_records_the_arm(path: Path, way: str, arm: str) -> None:
    agent = support(rollout())
    context = unit_of(agent, arm)
    if way == "run_async":
        returned: Any = await agent.run_async("Hi", context)
    elif way == "run":
        returned = await asyncio.to_thread(agent.run, "Hi", context)
    else:
        async with agent.stream("Hi", context) as run:
            events = [event async for event in run]
        assert isinstance(events[0], RunStarted)
        returned = run.context
    assert returned["result"].final_output == {"v1": V1.text, "v2": V2.text}[arm]
    (found,) = recorded(path)
    assert found["prompt_version"] == arm
    assert (found["rollout"], found["arm"], found["arm_share"]) == ("support:v1-v2", arm, 0.5)
    assert len(found["rollout_unit"]) == 16
    assert found["rollout_not_drawn"] is None


async def test_a_run_inside_another_records_the_arm_on_its_span(path: Path) -> None:
    agent = support(rollout())
    context = unit_of(agent, "v2")

    async def ask_support() -> str:
        """Ask."""
        returned = await agent.run_async("Hi", context)
        return str(returned["result"].final_output)

    outer = Agent("outer", "Ask.", model=ScriptedModel([ScriptedToolCall("ask_support", {}), "done"]))
    outer = outer.clone(tools=[ask_support])
    await outer.run_async("Hi")
    with trace("mine"):
        await agent.run_async("Hi", context)
    spans = [span for one in TraceStore(path).traces() for span in TraceStore(path).trace(one.trace_id).spans]
    raws: list[Any] = [span.raw for span in spans if span.name == "agent_run"]
    datas = [raw["span_data"]["data"] for raw in raws]
    assert [(one["arm"], one["arm_share"], one["prompt_version"]) for one in datas] == [("v2", 0.5, "v2")] * 2


async def test_the_metadata_of_the_user_and_of_middleware_cannot_replace_the_arm(path: Path) -> None:
    agent = support(rollout(), metadata={"arm": "mine", "rollout": "mine", "team": "blue"})
    await agent.run_async("Hi", unit_of(agent, "v2"), run_config={"trace_metadata": {"arm": "config"}})
    (found,) = TraceStore(path).traces()
    assert (found.metadata["arm"], found.metadata["team"]) == ("v2", "blue")


async def test_observers_of_the_agent_see_the_runs_of_all_arms(path: Path) -> None:
    agent, seen = support(rollout()), []
    with agent.subscribe(lambda event: seen.append(event) if isinstance(event, RunStarted) else None):
        for arm in ("v1", "v2"):
            await agent.run_async("Hi", unit_of(agent, arm))
    assert [event.agent for event in seen] == ["support", "support"]


async def test_an_arm_may_have_another_model_settings_and_tools_forbidden(path: Path) -> None:
    large = ScriptedModel([ScriptedToolCall("refund", {}), "no"])
    ran: list[str] = []

    def refund() -> str:
        """Refund."""
        ran.append("refund")
        return "refunded"

    arm = Arm(V2, model=large, model_settings=ModelSettings(temperature=0.3), tool_rules={"deny": ["refund"]})
    agent = support(rollout(arms={"v1": V1, "v2": arm}), tools=[refund])
    await agent.run_async("Hi", unit_of(agent, "v2"))
    assert [call.model_settings.temperature for call in large.calls] == [0.3, 0.3]
    assert large.calls[0].tools == []
    assert "E8" in str(large.calls[1].input)
    assert ran == []
    other = agent.clone(model=ScriptedModel([ScriptedToolCall("refund", {}), "yes"]))
    await other.run_async("Hi", unit_of(agent, "v1"))
    assert ran == ["refund"]


async def test_rules_of_an_arm_cannot_widen_those_of_the_run(path: Path) -> None:
    def refund() -> str:
        """Refund."""
        raise AssertionError("it must not run")

    model = ScriptedModel([ScriptedToolCall("refund", {}), "no"])
    arm = Arm(V2, model=model, tool_rules={"allow": ["refund", "search"]})
    agent = support(rollout(arms={"v1": V1, "v2": arm}), tools=[refund])
    context = unit_of(agent, "v2")
    await agent.run_async("Hi", {**context, "tool_rules": {"allow": ["search"]}})
    assert "E9" in str(model.calls[1].input) or "E8" in str(model.calls[1].input)


async def test_rules_of_the_control_hold_for_its_runs(path: Path) -> None:
    def refund() -> str:
        """Refund."""
        return "refunded"

    arms = {"v1": Arm(V1, tool_rules={"deny": ["refund"]}), "v2": V2}
    model = ScriptedModel(lambda call: ", ".join(tool.name for tool in call.tools) or "none")
    agent = support(rollout(arms=arms), tools=[refund], model=model)
    for arm, shown in (("v1", "none"), ("v2", "refund")):
        returned = await agent.run_async("Hi", unit_of(agent, arm))
        assert returned["result"].final_output == shown


@pytest.mark.parametrize("stored", [False, True], ids=["in memory", "as JSON"])
@pytest.mark.parametrize("arm", ["v1", "v2"])
async def test_a_resumed_run_keeps_its_arm_when_the_shares_have_changed(
    path: Path, arm: str, stored: bool
) -> None:
    def pay() -> str:
        """Pay."""
        return "paid"

    def answer(call: Any) -> Any:
        return call.system_instructions if "paid" in str(call.input) else ScriptedToolCall("pay", {})

    agent = support(rollout(), tools=[pay], model=ScriptedModel(answer), middleware=[Approve("pay")])
    paused = await agent.run_async("Hi", unit_of(agent, arm))
    state = paused["result"].to_state()
    # The arms change places: everybody has the other one now.
    state_now = promote("support", path, arm="v2") if arm == "v1" else stop("support", path)
    shared_of(agent).accept(state_now)
    if stored:
        state = await RunState.from_json(agent.sdk_agent, json.loads(json.dumps(state.to_json())))
    for item in state.get_interruptions():
        state.approve(item)
    resumed = await agent.run_async(state, unit_of(agent, {"v1": "v2", "v2": "v1"}[arm]))
    assert resumed["result"].final_output == {"v1": V1.text, "v2": V2.text}[arm]
    first, second = recorded(path)
    assert second == first
    assert (second["arm"], second["arm_share"]) == (arm, 0.5)


async def test_a_run_without_a_unit_gets_the_control(path: Path) -> None:
    agent = support(rollout())
    contexts: list[Any] = [{}, None, {"user": {}}, user(""), user(None), user(1.5), user(True), {"user": "x"}]
    for context in contexts:
        returned = await agent.run_async("Hi", copy.deepcopy(context))
        assert returned["result"].final_output == V1.text
    assert {(one["arm"], one["arm_share"], one["rollout_not_drawn"]) for one in recorded(path)} == {
        ("v1", None, "no unit")
    }


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ({}, "user.id is not in the context"),
        (user(""), "user.id is empty"),
        (user(1.5), "user.id is a float, not a str, an int or a UUID"),
    ],
)
async def test_a_missing_unit_may_be_an_error_which_the_trace_records(
    path: Path, context: dict[str, Any], said: str
) -> None:
    agent = support(rollout(on_missing_unit="raise"))
    with pytest.raises(MissingUnitError) as caught:
        await agent.run_async("Hi", context)
    assert str(caught.value) == f"[kantan-agents][E114] No unit for the rollout 'support:v1-v2': {said}"
    run = run_of(caught.value)
    assert run is not None
    assert run.metadata["rollout_not_drawn"] == "no unit"
    (found,) = TraceStore(path).traces()
    assert found.error is not None
    assert "E114" in found.error


async def test_a_unit_may_be_computed_and_its_errors_do_not_break_the_run(path: Path) -> None:
    agent = support(rollout(unit=lambda context: context["tenant"].upper()))
    await agent.run_async("Hi", {"tenant": "acme"})
    await agent.run_async("Hi", {})
    first, second = recorded(path)
    assert first["rollout_unit"] is not None
    assert (second["arm"], second["rollout_not_drawn"]) == ("v1", "no unit")
    strict = agent.clone(
        instructions=rollout(unit=lambda context: context["x"], on_missing_unit="raise", name="b"), name="b"
    )
    with pytest.raises(MissingUnitError, match="raised KeyError: 'x'") as caught:
        await strict.run_async("Hi", {})
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_key_with_a_dot_and_equal_ids_of_other_types_are_one_unit(path: Path) -> None:
    agent = support(rollout())
    units = {
        drawn(agent, context).metadata["rollout_unit"] for context in (user(7), user("7"), {"user.id": 7})
    }
    assert len(units) == 1


async def test_without_a_database_runs_get_the_control_and_one_error_is_logged(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Main, "recorder", None)
    agent = support(rollout())
    with caplog.at_level(logging.ERROR, "kantan_agents.rollout"):
        for number in range(20):
            returned = await agent.run_async("Hi", user(number))
            assert returned["result"].final_output == V1.text
    (record,) = caplog.records
    assert "call record_traces, or give store" in record.error  # type: ignore[attr-defined]
    record_traces(tmp_path / "later.db")  # from now on it is known
    outputs = {(await agent.run_async("Hi", user(number)))["result"].final_output for number in range(20)}
    assert outputs == {V1.text, V2.text}


async def test_a_handed_off_agent_is_the_control(path: Path) -> None:
    agent = support(rollout(), model=echo())
    model = ScriptedModel([ScriptedToolCall("transfer_to_support", {})])
    triage = Agent("triage", "Hand off.", model=model, handoffs=[agent])
    outputs = set()
    for number in range(12):
        model.enqueue(ScriptedToolCall("transfer_to_support", {}))
        outputs.add((await triage.run_async("Hi", user(number)))["result"].final_output)
    assert outputs == {V1.text}


async def test_an_agent_as_a_tool_is_the_control(path: Path) -> None:
    agent = support(rollout(), model=echo())
    outputs = set()
    for number in range(12):
        model = ScriptedModel([ScriptedToolCall("support", {"input": "Hi"}), "done"])
        outer = Agent("outer", "Ask.", model=model, tools=[agent])
        await outer.run_async("Hi", user(number))
        outputs.add(str(model.calls[1].input[-1]["output"]))
    assert outputs == {V1.text}


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent))]
)
async def test_an_agent_under_a_rollout_can_be_copied_and_pickled(path: Path, copied: Any) -> None:
    agent = support(rollout(), model="gpt-5-mini")
    twin = copied(agent)
    for number in range(30):
        one, other = drawn(agent, user(number)), drawn(twin, user(number))
        assert one.metadata == other.metadata


async def test_options_of_the_agent_hold_for_every_arm(path: Path) -> None:
    class Tagged(Agent[str]):
        tag = "none"

    agent = Tagged("support", rollout(), model=echo(), output_dest=None, history=1)
    agent.tag = "mine"
    context = unit_of(agent, "v2")
    for _ in range(3):
        await agent.run_async("Hi", context)
    assert len(context["history"]) == 1
    chosen = drawn(agent, context).agent
    assert type(chosen) is Tagged
    assert chosen.tag == "mine"


async def test_a_prompt_of_an_arm_is_rendered_from_the_context(path: Path) -> None:
    arms = {"v1": V1, "v2": Prompt("support", "v2", "For {{ $ctx.user.id }}.")}
    agent = support(rollout(arms=arms))
    context = unit_of(agent, "v2")
    returned = await agent.run_async("Hi", context)
    assert returned["result"].final_output == f"For {context['user']['id']}."


RAN: list[str] = []


def refund() -> str:
    """Refund."""
    RAN.append("refund")
    return "refunded"


def forbidding(path: Path) -> Agent[Any]:
    """Return an agent both of whose arms forbid its only tool."""
    rules = {"deny": ["refund"]}
    arms = {"v1": Arm(V1, tool_rules=rules), "v2": Arm(V2, tool_rules=rules)}
    model = ScriptedModel(
        lambda call: "done" if "call_id" in str(call.input) else ScriptedToolCall("refund", {})
    )
    return support(rollout(path, arms), tools=[refund], model=model)


@pytest.mark.parametrize(
    "way", ["directly", "by a hand-off", "as a tool", "by the SDK's runner", "evaluated"]
)
async def test_the_rules_of_the_control_hold_wherever_the_agent_works(path: Path, way: str) -> None:
    agent = forbidding(path)
    RAN.clear()
    if way == "directly":
        await agent.run_async("Hi", user(1))
    elif way == "by hand-off":
        model = ScriptedModel([ScriptedToolCall("transfer_to_support", {})])
        await Agent("triage", "x", model=model, handoffs=[agent]).run_async("Hi", user(1))
    elif way == "as a tool":
        model = ScriptedModel([ScriptedToolCall("support", {"input": "Hi"}), "done"])
        await Agent("outer", "x", model=model, tools=[agent]).run_async("Hi", user(1))
    elif way == "by the SDK's runner":
        with pytest.raises(ModelBehaviorError, match="refund not found"):  # it was not shown
            await Runner.run(agent, "Hi", context=user(1))
    else:
        dataset = Dataset("one", [Case("Hi", "1", context=user(1))])
        await evaluate_async({"support": agent}, dataset, name="try")
    assert RAN == []
    assert not agent.explain_tool("refund").allowed


async def test_a_copy_without_the_rollout_has_no_rules_of_an_arm(path: Path) -> None:
    agent = forbidding(path)
    RAN.clear()
    await agent.clone(name="free", instructions="Answer.").run_async("Hi", user(1))
    assert RAN == ["refund"]


@pytest.mark.parametrize("stored", [False, True], ids=["in memory", "as JSON"])
async def test_the_rules_of_an_arm_hold_when_another_agent_resumes_its_run(path: Path, stored: bool) -> None:
    def answer(call: Any) -> Any:
        if "refund" not in str(call.input):
            return ScriptedToolCall("refund", {}), ScriptedToolCall("ask", {})
        return "done"

    def ask() -> str:
        """Ask."""
        return "asked"

    RAN.clear()
    billing = Agent(
        "billing", "Bill.", model=ScriptedModel(answer), tools=[refund, ask], middleware=[Approve("ask")]
    )
    model = ScriptedModel(lambda _: ScriptedToolCall("transfer_to_billing", {}))
    arms = {"v1": V1, "v2": Arm(V2, tool_rules={"deny": ["refund"]})}
    agent = support(rollout(arms=arms), model=model, handoffs=[billing], middleware=[Approve("ask")])
    paused = await agent.run_async("Hi", unit_of(agent, "v2"))
    state = paused["result"].to_state()
    if stored:
        state = await RunState.from_json(agent.sdk_agent, json.loads(json.dumps(state.to_json())))
    for item in state.get_interruptions():
        state.approve(item)
    await billing.run_async(state, {})
    assert RAN == []
    last = TraceStore(path).traces(limit=1)[0].metadata
    assert (last["agent_name"], last["arm"]) == ("billing", "v2")


async def test_a_run_that_was_paused_inside_a_trace_of_the_user_keeps_its_arm(path: Path) -> None:
    def answer(call: Any) -> Any:
        return call.system_instructions if "paid" in str(call.input) else ScriptedToolCall("pay", {})

    def pay() -> str:
        """Pay."""
        return "paid"

    agent = support(rollout(), tools=[pay], model=ScriptedModel(answer), middleware=[Approve("pay")])
    for arm, stored in (("v1", False), ("v2", True)):
        with trace("mine"):
            paused = await agent.run_async("Hi", unit_of(agent, arm))
        state = paused["result"].to_state()
        if stored:
            state = await RunState.from_json(agent.sdk_agent, json.loads(json.dumps(state.to_json())))
        change = promote("support", arm="v2") if arm == "v1" else stop("support")
        assert change.revision > 1
        for item in state.get_interruptions():
            state.approve(item)
        resumed = await agent.run_async(state, user(1))
        assert resumed["result"].final_output == {"v1": V1.text, "v2": V2.text}[arm]


async def test_hand_offs_that_are_added_to_the_agent_later_hold_for_every_arm(path: Path) -> None:
    agent = support(rollout())
    context = unit_of(agent, "v2")
    await agent.run_async("Hi", context)
    other = Agent("other", "x", model=echo())
    for change in (agent.handoffs.append, lambda one: setattr(agent, "handoffs", [one])):
        change(other)
        made = drawn(agent, context).agent
        assert made is not agent
        assert made.handoffs == agent.handoffs == [other]
        agent.handoffs.clear()


async def test_a_run_that_comes_back_by_hand_offs_keeps_the_prompt_of_its_arm(path: Path) -> None:
    seen: list[str] = []

    def answer(call: Any) -> Any:
        seen.append(call.system_instructions)
        return "done" if len(seen) > 1 else ScriptedToolCall("transfer_to_billing", {})

    back = ScriptedModel([ScriptedToolCall("transfer_to_support", {})])
    billing = Agent("billing", "Bill.", model=back)
    agent = support(rollout(), model=ScriptedModel(answer), handoffs=[billing])
    billing.handoffs.append(agent)
    await agent.run_async("Hi", unit_of(agent, "v2"))
    assert seen == [V2.text, V2.text]


async def test_runs_without_a_unit_are_logged_once_and_counted(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    agent = support(rollout(unit=lambda context: context["user"].id))
    with caplog.at_level(logging.WARNING, "kantan_agents.rollout"):
        for number in range(5):
            await agent.run_async("Hi", user(number))
    (logged,) = [record for record in caplog.records if record.name == "kantan_agents.rollout"]
    assert "AttributeError" in logged.reason  # type: ignore[attr-defined]
    found = status("support")
    assert found.warnings == ("5 runs got the control without being drawn: no unit",)


async def test_a_uuid_is_a_unit(path: Path) -> None:
    agent = support(rollout())
    await agent.run_async("Hi", user(uuid.UUID(int=7)))
    assert recorded(path)[0]["rollout_unit"] is not None


async def test_metadata_of_the_user_are_no_evidence(path: Path) -> None:
    spoofed = {"arm_share": 0.5, "rollout_unit": "abc"}
    agent = support(rollout(), metadata=spoofed)
    await agent.run_async("Hi", {})
    assert sum(arm.runs for arm in status("support").arms) == 0


async def test_the_rules_of_an_arm_hold_for_delegated_agents(path: Path) -> None:
    cast = Cast(
        boss=[delegate("helper"), say("done")],
        helper=[use("refund"), say("tried")],
    )
    arms = {
        "v1": Prompt("boss", "v1", "You are boss."),
        "v2": Arm(Prompt("boss", "v2", "You are boss. Be kind."), tool_rules={"deny": ["refund"]}),
    }
    RAN.clear()
    tools = [refund, task_tool([definition("helper", tools=["refund"])])]
    agent = Agent("boss", rollout(arms=arms), model=cast, tools=tools)
    await agent.run_async("Hi", unit_of(agent, "v2"))
    assert len(cast.parts["helper"].calls) == 2
    assert RAN == []
    trace_ = TraceStore(path).traces()[0]
    assert (trace_.metadata["prompt_version"], trace_.metadata["arm"]) == ("v2", "v2")


async def test_a_changed_state_cannot_replace_the_standard_metadata(path: Path) -> None:
    def pay() -> str:
        """Pay."""
        return "paid"

    def answer(call: Any) -> Any:
        return "done" if "paid" in str(call.input) else ScriptedToolCall("pay", {})

    agent = support(rollout(), tools=[pay], model=ScriptedModel(answer), middleware=[Approve("pay")])
    paused = await agent.run_async("Hi", unit_of(agent, "v2"))
    data = json.loads(json.dumps(paused["result"].to_state().to_json()))
    data["trace"]["kantan_agents_chosen"] |= {"prompt_version": "v9", "agent_name": "other"}
    state = await RunState.from_json(agent.sdk_agent, data)
    for item in state.get_interruptions():
        state.approve(item)
    await agent.run_async(state, {})
    last = TraceStore(path).traces(limit=1)[0].metadata
    assert (last["prompt_version"], last["agent_name"], last["arm"]) == ("v2", "support", "v2")
