"""What is captured of runs inside runs, of hand-offs, of middleware, and of runs that end early."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from agents import Agent as SDKAgent
from agents import ModelResponse, SQLiteSession, Usage, function_tool
from kantan_llm import AsyncClientBundle
from openai.types.responses import ResponseTextDeltaEvent

from kantan_agents import (
    Agent,
    ContentSegment,
    Middleware,
    ModelCall,
    Prompt,
    ProviderResponse,
    judge_agent,
    task_tool,
)
from kantan_agents.middleware import Approve, Approved, Fallback, Retry, SlashCommands, decide, to_json
from kantan_agents.testing import OfflineServer, Reply, ScriptedModel, assistant_message, function_call
from tests.agent.delegation.cast import Cast, definition, delegate, read, say, use
from tests.programs import Preloaded
from tests.traces.capture.recording import Recording


class Around(Middleware):
    """A middleware that consists of a function."""

    def __init__(self, wrap: Any) -> None:
        self.wrap = wrap

    async def model_call(self, call: Any, call_next: Any) -> Any:
        return await self.wrap(call, call_next)


class Named(ScriptedModel):
    def __init__(self, name: str, *steps: Any) -> None:
        super().__init__(steps)
        self.model = name


@function_tool
async def look(city: str) -> str:
    """Look.

    Args:
        city: Where.
    """
    return f"sunny in {city}"


def looks(*cities: str) -> list[Any]:
    return [function_call("look", {"city": city}, call_id=city) for city in cities]


# The prompt and what it reads


async def test_the_prompt_of_a_run_is_stored_by_its_id(recording: Recording) -> None:
    prompt = Prompt(
        "support", "v2", "Help {{ $ctx.user.name }}.", meta={"owner": "a", "tags": ["x"]}, strict=True
    )
    await Agent("a", prompt, model=ScriptedModel(["Hi."])).run_async("Go", {"user": {"name": "Aiko"}})
    run = recording.run()
    (agent,) = run.agents
    assert agent.prompt is not None
    assert (agent.prompt.name, agent.prompt.version, agent.prompt.text) == (
        "support",
        "v2",
        "Help {{ $ctx.user.name }}.",
    )
    assert agent.prompt.meta == {"owner": "a", "tags": ["x"]}
    assert agent.prompt.is_strict
    assert recording.store.prompt(prompt.resolve_id()) == agent.prompt
    assert recording.trace().summary.metadata["prompt_id"] == agent.prompt.id


async def test_only_the_values_that_the_template_reads_are_captured(recording: Recording) -> None:
    context = {"user": {"name": "Aiko", "card": "private 1"}, "n": [1, {"x": 2.5}], "other": "private 2"}
    text = "{{ $ctx.user.name }} {{ $ctx.n.1.x }} {{ $ctx.missing }}"
    await Agent("a", text, model=ScriptedModel(["Hi."])).run_async("Go", dict(context))
    run = recording.run()
    assert run.agents[0].context == {"user.name": "Aiko", "n.1.x": 2.5}
    assert run.model_calls[0].context == run.agents[0].context
    recording.recorder.shutdown()
    assert b"private" not in recording.recorder.path.read_bytes()


async def test_a_context_that_changes_between_turns_is_captured_for_each_call(recording: Recording) -> None:
    context: dict[str, Any] = {"step": 1}

    async def advance() -> str:
        """Advance."""
        context["step"] += 1
        return "ok"

    calls = [[function_call("advance", {}, call_id=str(number))] for number in range(2)]
    agent = Agent("a", "Step {{ $ctx.step }}.", model=ScriptedModel([*calls, "Done."]), tools=[advance])
    await agent.run_async("Go", context)
    run = recording.run()
    assert [call.context["step"] for call in run.model_calls] == [1, 2, 3]
    assert [call.request.instructions for call in run.model_calls] == ["Step 1.", "Step 2.", "Step 3."]
    assert run.agents[0].context == {"step": 1}


async def test_a_value_that_is_gone_in_a_later_turn_is_not_captured_for_it(recording: Recording) -> None:
    context: dict[str, Any] = {"step": 1}

    async def forget() -> str:
        """Forget."""
        del context["step"]
        return "ok"

    model = ScriptedModel([[function_call("forget", {}, call_id="1")], "Done."])
    await Agent("a", "Step {{ $ctx.step }}.", model=model, tools=[forget]).run_async("Go", context)
    assert [call.context for call in recording.run().model_calls] == [{"step": 1}, {}]


# Middleware


async def test_each_attempt_of_a_retry_is_a_call(recording: Recording) -> None:
    busy = Reply("busy", status=503, headers={"retry-after-ms": "1"})
    with OfflineServer([busy, busy, "Hi."]) as server:
        bundle = server.bundle()
        client = bundle.client.with_options(max_retries=0)
        once = AsyncClientBundle(client, bundle.model, bundle.provider, bundle.base_url)
        agent = Agent("a", "x", model=once, middleware=[Retry(3, initial_delay=0)])
        await agent.run_async("Go")
    run = recording.run()
    assert [call.error is None for call in run.model_calls] == [False, False, True]
    assert run.model_calls[0].error is not None
    assert run.model_calls[0].error.type == "InternalServerError"
    assert len({call.request.hash for call in run.model_calls}) == 1
    assert (run.outcome, run.output) == ("finished", "Hi.")


async def test_a_call_names_the_model_that_fallback_has_chosen(recording: Recording) -> None:
    first, spare = Named("first", ConnectionError("down")), Named("spare", "Hi.")
    await Agent("a", "x", model=first, middleware=[Fallback(spare)]).run_async("Go")
    assert [(call.model, call.error is None) for call in recording.run().model_calls] == [
        ("first", False),
        ("spare", True),
    ]


async def test_what_middleware_changes_is_captured_as_it_was_sent(recording: Recording) -> None:
    async def change(call: ModelCall, call_next: Any) -> Any:
        call.instructions = f"{call.instructions} Be brief."
        call.input = [*call.input, {"role": "user", "content": "Quick!"}]
        return await call_next(call)

    model = ScriptedModel(["Hi."])
    await Agent("a", "x", model=model, middleware=[Around(change)]).run_async("Go")
    request = recording.call().request
    assert model.last_call is not None
    assert request.instructions == model.last_call.system_instructions == "x Be brief."
    assert [*request.input] == model.last_call.input


async def test_an_answer_of_middleware_itself_is_no_model_call(recording: Recording) -> None:
    async def answer(_call: ModelCall, _call_next: Any) -> ModelResponse:
        return ModelResponse([assistant_message("Made up.")], Usage(), None)

    await Agent("a", "x", model=ScriptedModel(), middleware=[Around(answer)]).run_async("Go")
    run = recording.run()
    assert run.model_calls == ()
    assert run.output == "Made up."


async def test_an_answer_that_middleware_changes_is_captured_unchanged(
    recording: Recording,
) -> None:
    async def change(call: ModelCall, call_next: Any) -> ModelResponse:
        response: ModelResponse = await call_next(call)
        return ModelResponse([assistant_message("Other.")], response.usage, None)

    await Agent("a", "x", model=ScriptedModel(["From the model."]), middleware=[Around(change)]).run_async(
        "Go"
    )
    run = recording.run()
    (call,) = run.model_calls
    assert call.answer is not None
    assert call.answer.output[0]["content"][0]["text"] == "From the model."  # type: ignore[call-overload]
    assert run.output == "Other."


async def test_a_call_of_a_middleware_for_its_own_purposes_is_marked(recording: Recording) -> None:
    async def summarize(call: ModelCall, call_next: Any) -> ModelResponse:
        await call_next(call.internally(instructions="Summarize.", tools=[]))
        response: ModelResponse = await call_next(call)
        return response

    model = ScriptedModel(["In short.", "Hi."])
    await Agent("a", "x", model=model, tools=[look], middleware=[Around(summarize)]).run_async("Go")
    assert [
        (call.is_internal, call.request.instructions, len(call.request.tools))
        for call in recording.run().model_calls
    ] == [(True, "Summarize.", 0), (False, "x", 1)]


# Runs inside runs


async def test_a_delegated_run_has_a_record_of_its_own_with_its_parent(recording: Recording) -> None:
    cast = Cast(boss=[delegate("reader"), say("done")], reader=[use("read", path="a"), say("read it")])
    agent = Agent("boss", "You are boss.", model=cast, tools=[read, task_tool([definition("reader")])])
    await agent.run_async("Go")
    trace = recording.trace()
    assert trace.missing == ()
    outer, inner = trace.runs
    assert (outer.agent, inner.agent) == ("boss", "reader")
    assert (outer.parent_run, outer.parent_call) == (None, None)
    assert (inner.parent_run, inner.parent_call) == (outer.id, "d1")
    assert outer.inner_runs == (inner.id,)
    assert [call.request.instructions for call in inner.model_calls] == ["You are reader."] * 2
    assert (inner.input, inner.output) == ("Do it.", "read it")
    assert [call.tool.name for call in inner.tool_calls] == ["read"]
    assert outer.tool_calls[0].output == "read it"
    assert [call.agent for call in trace.model_calls] == ["boss", "reader", "reader", "boss"]


async def test_calls_of_an_agent_that_is_a_tool_name_the_call_inside_which_they_are(
    recording: Recording,
) -> None:
    expert = Agent(
        "expert",
        "Know.",
        model=ScriptedModel([looks("Oslo"), "42"]),
        tools=[look],
        handoff_description="Knows.",
    )
    model = ScriptedModel([[function_call("expert", {"input": "What?"}, call_id="e1")], "It is 42."])
    await Agent("a", "x", model=model, tools=[expert]).run_async("Go")
    run = recording.run()
    assert [(call.agent, call.parent_call) for call in run.model_calls] == [
        ("a", None),
        ("expert", "e1"),
        ("expert", "e1"),
        ("a", None),
    ]
    assert [(call.tool.name, call.agent, call.parent_call) for call in run.tool_calls] == [
        ("expert", "a", None),
        ("look", "expert", "e1"),
    ]


async def test_runs_that_a_tool_starts_have_this_call_as_their_parent(recording: Recording) -> None:
    inner = Agent("inner", "x", model=ScriptedModel(lambda _call: "Hi."))

    async def ask(n: int) -> str:
        """Ask."""
        return str((await inner.run_async(f"Go {n}"))["result"].final_output)

    calls = [function_call("ask", {"n": number}, call_id=f"c{number}") for number in range(3)]
    await Agent("outer", "x", model=ScriptedModel([calls, "Done."]), tools=[ask]).run_async("Go")
    trace = recording.trace()
    assert trace.missing == ()
    outer = next(run for run in trace.runs if run.agent == "outer")
    parents = {run.parent_call: run.input for run in trace.runs if run.agent == "inner"}
    assert parents == {f"c{number}": f"Go {number}" for number in range(3)}
    assert {call.call_id: json.loads(call.arguments) for call in outer.tool_calls} == {
        f"c{number}": {"n": number} for number in range(3)
    }


async def test_a_handoff_is_captured_with_both_agents(recording: Recording) -> None:
    other = Agent("other", Prompt("second", "1", "Help."), model=ScriptedModel(["Here."]), tools=[look])
    model = ScriptedModel([[function_call("transfer_to_other", {}, call_id="h1")]])
    await Agent("first", "x", model=model, handoffs=[other]).run_async("Go")
    run = recording.run()
    assert [(call.agent, call.request.instructions) for call in run.model_calls] == [
        ("first", "x"),
        ("other", "Help."),
    ]
    assert [agent.name for agent in run.agents] == ["first", "other"]
    assert [agent.prompt.name for agent in run.agents if agent.prompt is not None] == ["first", "second"]
    assert [tool.name for tool in run.model_calls[1].request.tools] == ["look"]
    assert run.output == "Here."


async def test_a_plain_sdk_agent_that_a_handoff_reaches_is_captured(recording: Recording) -> None:
    plain = SDKAgent(
        name="plain", instructions="Be plain.", model=ScriptedModel([looks("Oslo"), "Plain."]), tools=[look]
    )
    model = ScriptedModel([[function_call("transfer_to_plain", {}, call_id="h1")]])
    await Agent("first", "x", model=model, handoffs=[plain]).run_async("Go")
    run = recording.run()
    assert [(call.agent, call.request.instructions) for call in run.model_calls] == [
        ("first", "x"),
        ("plain", "Be plain."),
        ("plain", "Be plain."),
    ]
    assert [(call.agent, call.output) for call in run.tool_calls] == [("plain", "sunny in Oslo")]


# Ways to run


async def test_each_turn_of_a_session_holds_the_whole_conversation(recording: Recording) -> None:
    session = SQLiteSession("s")
    agent = Agent("a", "x", model=ScriptedModel(["One.", "Two."]))
    await agent.run_async("First", session=session)
    await agent.run_async("Second", session=session)
    session.close()
    first, second = (trace.runs[0] for trace in recording.traces())
    assert second.input == "Second"
    assert first.model_calls[0].answer is not None
    assert len(second.model_calls[0].request.input) == 3
    assert second.model_calls[0].request.input[0] == {"content": "First", "role": "user"}


def test_a_sync_run_is_captured(recording: Recording) -> None:
    Agent("a", "x", model=ScriptedModel([looks("Oslo"), "Hi."]), tools=[look]).run("Go")
    run = recording.run()
    assert (run.output, len(run.model_calls), len(run.tool_calls)) == ("Hi.", 2, 1)


async def test_concurrent_runs_of_one_agent_do_not_mix(recording: Recording) -> None:
    async def answer(call: Any) -> str:
        await anyio.lowlevel.checkpoint()
        return f"To {call.input[-1]['content']}"

    agent = Agent("a", "For {{ $ctx.n }}.", model=ScriptedModel(answer))
    await asyncio.gather(*(agent.run_async(f"Go {number}", {"n": number}) for number in range(20)))
    runs = [trace.runs[0] for trace in recording.traces()]
    assert {(run.input, run.output, run.model_calls[0].request.instructions) for run in runs} == {
        (f"Go {number}", f"To Go {number}", f"For {number}.") for number in range(20)
    }


async def test_concurrent_tool_calls_of_one_turn_are_captured_apart(recording: Recording) -> None:
    model = ScriptedModel([looks("Oslo", "Rome", "Kyoto"), "Hi."])
    await Agent("a", "x", model=model, tools=[look]).run_async("Go")
    calls = recording.run().tool_calls
    assert {call.call_id: (json.loads(call.arguments), call.output) for call in calls} == {
        city: ({"city": city}, f"sunny in {city}") for city in ("Oslo", "Rome", "Kyoto")
    }


async def test_a_judge_is_captured(recording: Recording) -> None:
    judge = judge_agent(
        Prompt("support", "v1", "Help."), model=ScriptedModel([{"score": 0.5, "comments": ["meh"]}])
    )
    await judge.run_async("Figure it out.")
    run = recording.run()
    assert run.output == {"score": 0.5, "comments": ["meh"]}
    assert run.model_calls[0].request.output is not None


class Echo:
    name = "echo"

    async def generate(self, prompt: str, context: Any) -> ProviderResponse:
        return ProviderResponse([ContentSegment.of_text(f"You said {prompt}")])


async def test_a_model_of_a_custom_provider_is_captured(recording: Recording) -> None:
    await Agent("a", "x", model=Echo()).run_async("Go")
    call = recording.call()
    assert (call.provider, call.model, call.api) == ("echo", "echo", "other")
    assert call.request.instructions == "x"
    assert call.answer is not None


async def test_a_slash_command_is_captured_as_a_run_without_model_calls(recording: Recording) -> None:
    model = ScriptedModel(["Not asked."])
    agent = Agent("a", "x", model=model, tools=[look], middleware=[SlashCommands({"allow": "*"})])
    await agent.run_async("/look Oslo")
    run = recording.run()
    assert run.input == "/look Oslo"
    assert run.model_calls == ()
    (call,) = run.tool_calls
    assert call.tool.name == "look"
    assert call.decision is not None
    assert call.decision.is_allowed
    assert call.output == "sunny in Oslo"


# Ends


async def test_a_failed_run_is_captured_with_its_error(recording: Recording) -> None:
    with pytest.raises(LookupError):
        await Agent("a", "x", model=ScriptedModel([LookupError("no model")])).run_async("Go")
    run = recording.run()
    assert run.outcome == "failed"
    assert run.error is not None
    assert (run.error.type, run.error.message) == ("LookupError", "no model")
    assert run.model_calls[0].error is not None
    assert run.output is None


async def test_a_run_that_is_cancelled_during_a_tool_is_captured(recording: Recording) -> None:
    begun = anyio.Event()

    async def wait() -> str:
        """Wait."""
        begun.set()
        await anyio.sleep(60)
        return "never"

    model = ScriptedModel([[function_call("wait", {}, call_id="w")]])
    task = asyncio.ensure_future(Agent("a", "x", model=model, tools=[wait]).run_async("Go"))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    run = recording.run()
    assert run.outcome == "cancelled"
    (call,) = run.tool_calls
    assert call.output is None
    assert call.error is not None
    assert call.error.type == "CancelledError"


async def test_a_run_that_is_cancelled_during_a_model_call_is_captured(recording: Recording) -> None:
    begun = anyio.Event()

    async def answer(_call: Any) -> str:
        begun.set()
        await anyio.sleep(60)
        return "never"

    task = asyncio.ensure_future(Agent("a", "x", model=ScriptedModel(answer)).run_async("Go"))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    run = recording.run()
    assert run.outcome == "cancelled"
    assert run.model_calls[0].answer is None
    assert run.model_calls[0].error is not None


async def test_a_stream_that_is_left_early_is_captured(recording: Recording) -> None:
    with OfflineServer(["A long answer that is sent in several pieces."]) as server:
        agent = Agent("a", "x", model=server.bundle())
        async with agent.stream("Go") as events:
            async for event in events:
                if (
                    isinstance(getattr(event, "data", None), ResponseTextDeltaEvent)
                    or "Delta" in type(event).__name__
                ):
                    break
    run = recording.run()
    assert run.outcome == "cancelled"
    (call,) = run.model_calls
    assert call.answer is None
    assert call.error is not None


async def test_a_paused_run_and_the_run_that_resumes_it_are_captured(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KANTAN_AGENTS_KEY", "a key for these tests only")
    model = ScriptedModel([looks("Oslo"), "Sunny."])
    agent = Agent("a", "For {{ $ctx.user }}.", model=model, tools=[look], middleware=[Approve("look")])
    context = await agent.run_async("Go", {"user": "Aiko", "card": "private 1"})
    state = await decide(agent, to_json(context), {"Oslo": Approved()})
    await agent.run_async(state)
    paused, resumed = (trace.runs[0] for trace in recording.traces())
    assert paused.input == "Go"
    assert paused.state is None
    assert (paused.outcome, paused.output, len(paused.model_calls)) == ("finished", None, 1)
    assert resumed.input is None
    assert resumed.state is not None
    assert resumed.output == "Sunny."
    assert [call.call_id for call in resumed.tool_calls] == ["Oslo"]
    assert paused.tool_calls == ()
    assert [trace.missing for trace in recording.traces()] == [(), ()]


async def test_a_failed_tool_and_one_that_times_out_are_captured(recording: Recording) -> None:
    async def fail() -> str:
        """Fail."""
        raise LookupError("no file")

    @function_tool(timeout=0.01)
    async def slow() -> str:
        """Be slow."""
        await anyio.sleep(60)
        return "never"

    calls = [function_call(name, {}, call_id=name) for name in ("fail", "slow")]
    await Agent("a", "x", model=ScriptedModel([calls, "Done."]), tools=[fail, slow]).run_async("Go")
    by_name = {call.tool.name: call for call in recording.run().tool_calls}
    assert str(by_name["fail"].output).startswith("An error occurred")
    assert "timed out" in str(by_name["slow"].output)
    assert by_name["slow"].error is not None


# What a record leaves behind

RECORDED_RUNS = """
import asyncio, gc, sys
from agents import function_tool, set_trace_processors
from kantan_agents import Agent, SQLiteRecorder
from kantan_agents.core.pipeline import Run
from kantan_agents.testing import ScriptedModel, ScriptedToolCall

@function_tool
async def look() -> str:
    "Look."
    return "sunny"

async def main():
    set_trace_processors([SQLiteRecorder(sys.argv[1])])
    agent = Agent("a", "Help.", model=ScriptedModel([ScriptedToolCall("look"), "Hi."] * 5), tools=[look])
    gc.collect()
    gc.disable()
    for _ in range(5):
        await agent.run_async("Go", {})
    return sum(isinstance(found, Run) for found in gc.get_objects())

print(asyncio.run(main()))
"""


def test_a_recorded_run_is_freed_without_the_garbage_collector(preloaded: Preloaded, tmp_path: Path) -> None:
    # In a process of its own, as pytest keeps what is logged of a run.
    done = preloaded.run(["-c", RECORDED_RUNS, str(tmp_path / "traces.sqlite3")])
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) <= 1  # the SDK's last task may keep the last run
