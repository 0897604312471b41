"""An Agent is accepted where the SDK expects an ``agents.Agent``, and its tool rules apply there too."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import functools
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import agents
import msgspec
import pytest
from agents import GuardrailFunctionOutput, RunHooks, Runner, RunState
from agents.extensions.handoff_prompt import prompt_with_handoff_instructions
from agents.realtime import RealtimeAgent
from agents.voice import SingleAgentVoiceWorkflow

from kantan_agents import Agent, AgentDefinition, Prompt, agent_of, task_tool
from kantan_agents.errors import FixedOptionError, InvalidOptionError
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from tests.conftest import TraceDB


def say(text: str) -> list[Any]:
    return [assistant_message(text)]


def call(name: str, call_id: str = "c1", **arguments: Any) -> list[Any]:
    return [function_call(name, arguments, call_id=call_id)]


def transfer(name: str, call_id: str = "t1") -> list[Any]:
    return call(f"transfer_to_{name}", call_id)


class Recorder:
    def __init__(self) -> None:
        self.calls: list[str] = []

    def tool(self, name: str = "remove", **options: Any) -> agents.FunctionTool:
        def function(path: str) -> str:
            self.calls.append(path)
            return f"removed {path}"

        return agents.function_tool(function, name_override=name, **options)


async def run(agent: agents.Agent[Any], context: Any) -> Any:
    return await Runner.run(agent, "hi", context=context)


async def run_streamed(agent: agents.Agent[Any], context: Any) -> Any:
    result = Runner.run_streamed(agent, "hi", context=context)
    async for _ in result.stream_events():
        pass
    return result


async def run_sync(agent: agents.Agent[Any], context: Any) -> Any:
    def run_here() -> Any:
        asyncio.set_event_loop(asyncio.new_event_loop())
        try:
            return Runner.run_sync(agent, "hi", context=context)
        finally:
            asyncio.get_event_loop().close()

    return await asyncio.to_thread(run_here)


each_way = pytest.mark.parametrize("way", [run, run_streamed, run_sync])
Way = Callable[[Any, Any], Any]


@each_way
async def test_the_sdks_runner_runs_an_agent_with_its_instructions_and_tools(way: Way) -> None:
    model, done = ScriptedModel([call("remove", path="a"), say("done")]), Recorder()
    agent = Agent("a", "Hi {{ $ctx.who }}", model=model, tools=[done.tool()])
    result = await way(agent, {"who": "Bo"})
    assert (result.final_output, done.calls) == ("done", ["a"])
    assert [one.system_instructions for one in model.calls] == ["Hi Bo", "Hi Bo"]
    assert result.last_agent is agent


@each_way
async def test_an_sdk_agent_hands_off_to_an_agent(way: Way) -> None:
    model = ScriptedModel([transfer("ours"), say("done")])
    ours = Agent("ours", "For {{ $ctx.who }}", model=model)
    plain = agents.Agent(name="plain", instructions="x", model=model, handoffs=[ours])
    result = await way(plain, {"who": "Bo"})
    assert (result.final_output, model.calls[-1].system_instructions) == ("done", "For Bo")
    assert agent_of(result.last_agent) is ours


async def test_a_handoff_object_of_the_sdk_takes_an_agent() -> None:
    model = ScriptedModel([call("give_up"), say("done")])
    ours = Agent("ours", "For {{ $ctx.who }}", model=model, handoff_description="Helps.")
    handoff = agents.handoff(ours, tool_name_override="give_up")
    assert "Helps." in handoff.tool_description
    plain = agents.Agent(name="plain", instructions="x", model=model, handoffs=[handoff])
    assert (await run(plain, {"who": "Bo"})).final_output == "done"
    context = await Agent("b", "x", model=ScriptedModel([say("1")]), handoffs=[handoff]).run_async("hi")
    assert context["result"].final_output == "1"


@pytest.mark.parametrize("way", [run, run_streamed])
async def test_the_rules_of_the_context_apply_to_an_agent_that_the_sdk_runs_or_hands_off_to(way: Way) -> None:
    done = Recorder()
    for start in ("itself", "handoff"):
        turns = [transfer("ours")] if start == "handoff" else []
        model = ScriptedModel([*turns, call("keep", path="a"), say("done")])
        ours = Agent("ours", "x", model=model, tools=[done.tool("remove"), done.tool("keep")])
        first = agents.Agent(name="plain", model=model, handoffs=[ours]) if turns else ours
        rules = {"deny": ["remove"], "params": {"keep": {"path": {"enum": ["b"]}}}}
        await way(first, {"tool_rules": rules})
        assert [tool.name for tool in model.calls[-1].tools] == ["keep"]
    assert done.calls == []


async def test_an_agent_behind_a_plain_agent_is_under_the_rules_of_the_run_and_in_its_trace(
    traces: TraceDB,
) -> None:
    done = Recorder()
    model = ScriptedModel([transfer("plain"), transfer("second", "t2"), call("keep", path="a"), say("end")])
    second = Agent("second", "For {{ $ctx.who }}", model=model, tools=[done.tool(), done.tool("keep")])
    plain = agents.Agent(name="plain", instructions="x", model=model, handoffs=[second])
    first = Agent("first", "x", model=model, handoffs=[plain])
    context = await first.run_async("hi", {"who": "Bo", "tool_rules": {"deny": ["remove"]}})
    assert (context["result"].final_output, done.calls) == ("end", ["a"])
    assert [tool.name for tool in model.calls[-1].tools] == ["keep"]
    assert model.calls[-1].system_instructions == "For Bo"
    assert agent_of(context["result"].last_agent) is second
    spans: list[Any] = traces.spans(name="agent_run")
    recorded = [span.raw["span_data"]["data"]["agent_name"] for span in spans]
    assert recorded == ["second"]


async def test_a_cycle_over_a_plain_agent_leads_back_to_the_agent() -> None:
    model = ScriptedModel([transfer("plain"), transfer("first", "t2"), say("end")])
    first = Agent("first", "For {{ $ctx.who }}", model=model)
    first.handoffs.append(agents.Agent(name="plain", instructions="x", model=model, handoffs=[first]))
    context = await first.run_async("hi", {"who": "Bo"})
    assert [one.system_instructions for one in model.calls] == ["For Bo", "x", "For Bo"]
    assert agent_of(context["result"].last_agent) is first


@pytest.mark.parametrize("runs", ["the SDK", "the agent"])
@pytest.mark.parametrize("as_json", [True, False])
async def test_a_paused_run_is_resumed_with_the_agent_itself(runs: str, as_json: bool) -> None:
    done = Recorder()
    model = ScriptedModel([call("remove", path="a"), say("done")])
    agent = Agent("a", "x", model=model, tools=[done.tool(needs_approval=True)])
    result = await Runner.run(agent, "hi") if runs == "the SDK" else (await agent.run_async("hi"))["result"]
    state = result.to_state()
    if as_json:
        state = await RunState.from_json(agent, state.to_json())
    state.approve(state.get_interruptions()[0])
    if runs == "the SDK":
        last = await Runner.run(agent, state)
    else:
        last = (await agent.run_async(state))["result"]
    assert (last.final_output, done.calls) == ("done", ["a"])


async def test_hooks_and_guardrails_receive_an_agent_that_leads_back() -> None:
    seen: list[Any] = []

    class Hooks(RunHooks[Any]):
        async def on_agent_start(self, context: Any, agent: Any) -> None:
            seen.append(agent_of(agent))

    @agents.input_guardrail
    async def check(context: Any, agent: Any, input: Any) -> GuardrailFunctionOutput:
        seen.append(agent_of(agent))
        answer = await Runner.run(checker, input, context=context.context)
        return GuardrailFunctionOutput(answer.final_output, tripwire_triggered=False)

    checker = Agent("checker", "Check.", model=ScriptedModel([say("fine")] * 2))
    agent = Agent("a", "x", model=ScriptedModel([say("1"), say("2")]), input_guardrails=[check])
    await Runner.run(agent, "hi", hooks=Hooks())
    await agent.run_async("hi", hooks=Hooks())
    assert [one.name for one in seen if one is not checker] == ["a"] * 4
    assert all(one in (agent, checker) for one in seen)


async def test_an_agent_that_the_sdk_runs_can_delegate() -> None:
    child = AgentDefinition(name="helper", description="Helps.", system_prompt="Help.")
    model = ScriptedModel(
        [
            call("Task", subagent_type="helper", prompt="q", description="d"),
            say("42"),
            say("done"),
        ]
    )
    agent = Agent("a", "x", model=model, tools=[task_tool([child])])
    result = await Runner.run(agent, "hi")
    assert result.final_output == "done"
    assert "42" in str([item.output for item in result.new_items if item.type == "tool_call_output_item"])


async def test_voice_workflows_take_an_agent_and_realtime_agents_take_its_tool() -> None:
    agent = Agent("a", "x", model=ScriptedModel([say("spoken")]))
    assert [text async for text in SingleAgentVoiceWorkflow(agent).run("hi")] == ["spoken"]
    assert [tool.name for tool in RealtimeAgent(name="r", tools=[agent.as_tool()]).tools] == ["a"]


def test_an_agent_is_an_instance_of_the_sdks_class_and_keeps_its_own_type() -> None:
    agent = Agent("a", "x")
    assert isinstance(agent, agents.Agent)
    assert isinstance(agent, Agent)
    assert type(agent) is Agent
    assert not isinstance(agent.sdk_agent, Agent)


def test_the_options_can_be_read_as_on_an_agent_of_the_sdk() -> None:
    prompt = Prompt("p", "v1", prompt_with_handoff_instructions("x"))
    settings = agents.ModelSettings(temperature=0.5)
    inner = Agent("inner", "x")
    agent = Agent(
        "a",
        prompt,
        handoff_description="d",
        model_settings=settings,
        tools=[Recorder().tool("one"), agents.WebSearchTool(), inner],
        handoffs=[inner],
    )
    assert agent.instructions is prompt
    assert (agent.handoff_description, agent.model_settings) == ("d", settings)
    assert [tool.name for tool in agent.tools] == ["one", "web_search", "inner"]
    assert agent.handoffs == [inner]
    assert (agent.hooks, agent.output_type, agent.input_guardrails) == (None, None, [])


OPTIONS = {*inspect.signature(Agent).parameters, *agents.Agent.__dataclass_fields__} - {"sdk_agent_options"}


@pytest.mark.parametrize("option", sorted(OPTIONS - {"handoffs"}))
def test_assigning_an_option_says_how_to_change_it(option: str) -> None:
    agent = Agent("a", "x")
    with pytest.raises(FixedOptionError) as caught:
        setattr(agent, option, None)
    assert isinstance(caught.value, AttributeError)
    assert str(caught.value) == (
        f"[kantan-agents][E67] {option} of agent 'a' cannot be assigned; create the agent with it, or a "
        f"changed copy: agent.clone({option}=...)"
    )


async def test_hand_offs_may_be_assigned_and_are_checked_as_those_that_are_given() -> None:
    other = Agent("other", "x")
    agent = Agent("a", "x", model=ScriptedModel([say("1"), say("2")]))
    await agent.run_async("hi")
    given = [other]
    agent.handoffs = given
    given.clear()
    await agent.run_async("hi")
    assert [len(call.handoffs) for call in agent.sdk_agent.model.calls] == [0, 1]
    assert msgspec.json.decode(agent.recorded_options)["handoffs"] == ["other"]
    assert agent.clone().handoffs == [other]
    with pytest.raises(InvalidOptionError, match="handoffs: must be a list"):
        agent.handoffs = "other"  # type: ignore[assignment]
    assert agent.handoffs == [other]


async def test_a_subclass_keeps_what_it_sets_under_the_name_of_an_option_before_it_creates_the_agent() -> (
    None
):
    class Mine(Agent):
        def __init__(self, model: Any) -> None:
            self.tools = ["a name"]  # type: ignore[assignment]
            self.prompt = "mine"  # type: ignore[assignment]
            super().__init__("mine", "x", tools=[Recorder().tool("one")], model=model)
            self.tools.append("another")  # type: ignore[attr-defined]
            self.prompt += "!"  # type: ignore[operator]

    model = ScriptedModel([say("1"), say("2")])
    agent: Any = Mine(model)
    await agent.run_async("hi")
    await Runner.run(agent, "hi")
    assert [[tool.name for tool in one.tools] for one in model.calls] == [["one"]] * 2
    assert (agent.tools, agent.prompt) == (["a name", "another"], "mine!")


def test_a_field_of_a_dataclass_may_have_the_name_of_an_option() -> None:
    base: Any = Agent

    @dataclasses.dataclass
    class Tenant(base):  # type: ignore[misc]
        tenant: str
        tools: list[str] = dataclasses.field(default_factory=list)

        def __post_init__(self) -> None:
            super().__init__(self.tenant, "x")

    agent = Tenant("acme", ["one"])
    assert (agent.name, agent.tools) == ("acme", ["one"])
    assert repr(agent).endswith("Tenant(tenant='acme', tools=['one'])")
    assert dataclasses.replace(agent, tenant="other").name == "other"
    assert agent != agent.sdk_agent


def test_a_subclass_that_assigns_an_option_afterwards_reads_what_to_do() -> None:
    class Mine(Agent):
        def __init__(self) -> None:
            super().__init__("mine", "x")
            self.tools = []  # type: ignore[assignment]

    with pytest.raises(FixedOptionError) as caught:
        Mine()
    assert caught.value.__notes__ == [
        "An attribute tools of Mine itself must be set before super().__init__(), or be renamed."
    ]


def test_the_class_that_an_agent_names_is_its_own_in_all_but_identity() -> None:
    registered: list[type[Any]] = []

    class Base(Agent):
        created = 0

        def __init_subclass__(cls) -> None:
            registered.append(cls)

        def __init__(self, name: str) -> None:
            super().__init__(name, "x")
            self.__class__.created += 1

        def another(self) -> Any:
            return self.__class__("another")

    class Mine(Base):
        pass

    agent = Mine("a")
    assert isinstance(agent, agents.Agent)
    seen = agent.__class__
    assert (seen.__name__, seen.__module__, repr(seen)) == ("Mine", __name__, repr(Mine))
    assert (seen, hash(seen), {Mine: 1}[seen]) == (Mine, hash(Mine), 1)
    assert seen is Mine("b").__class__
    assert issubclass(seen, Mine)
    assert type(agent.another()) is Mine
    assert (Mine.created, vars(Base)["created"]) == (3, 0)
    assert (registered, Mine.__subclasses__(), Base.__subclasses__()) == ([Mine], [], [Mine])
    named = functools.singledispatch(lambda one: "other")
    named.register(Agent, lambda one: "Agent")
    assert named(agent) == "Agent"


def test_a_subclass_with_slots_is_an_agent_of_the_sdk_as_well() -> None:
    class Slots(Agent):
        __slots__ = ("count",)

    assert isinstance(Slots("a", "x"), agents.Agent)


def test_an_unknown_attribute_is_an_attribute_error_of_the_agent() -> None:
    with pytest.raises(AttributeError, match="'Agent' object has no attribute 'nonsense'"):
        _ = Agent("a", "x").nonsense  # type: ignore[attr-defined]
    assert not hasattr(object.__new__(Agent), "model")


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent))]
)
def test_an_agent_can_be_copied_and_pickled(copied: Any) -> None:
    agent = copied(Agent("a", "x", handoff_description="d"))
    assert type(agent) is Agent
    assert isinstance(agent, agents.Agent)
    assert (agent.name, agent.handoff_description) == ("a", "d")


async def test_the_next_turn_of_a_conversation_starts_at_the_agent_that_answered() -> None:
    model = ScriptedModel([transfer("billing"), say("How much?"), say("Paid back.")])
    billing = Agent("billing", "Bill {{ $ctx.who }}", model=model)
    triage = Agent("triage", "Sort", model=model, handoffs=[billing])
    context = await triage.run_async("I want my money back", {"who": "Bo"})
    answered = agent_of(context["result"].last_agent)
    assert answered is billing
    question = [*context["result"].to_input_list(), {"role": "user", "content": "10 euros"}]
    context = await answered.run_async(question, context)
    assert context["result"].final_output == "Paid back."
    assert model.calls[-1].system_instructions == "Bill Bo"
    assert context["history"][-1] == {"role": "assistant", "text": "Paid back."}


def test_agent_of_leads_back_from_every_form_of_an_agent() -> None:
    agent = Agent("a", "x")
    assert agent_of(agent) is agent
    assert agent_of(agent.sdk_agent) is agent
    assert agent_of(agents.Agent(name="plain")) is None
    assert agent_of(None) is None
