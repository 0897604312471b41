"""What a collector gets of runs of every kind, over the real SDK runner, HTTP and protobuf."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import agents
import pytest
from agents import Runner, function_tool

from kantan_agents import (
    RUBRIC,
    Agent,
    AgentDefinition,
    Middleware,
    OtelExporter,
    Prompt,
    ToolCall,
    ToolNext,
    TraceStore,
    judge_agent,
    record_traces,
    redact_texts,
    task_tool,
)
from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.replay.run_again import RecordedSession
from kantan_agents.testing import Reply, ScriptedToolCall
from kantan_agents.traces.telemetry import conventions as names
from tests.traces.telemetry.receiver import Receiver

Sent = Callable[[], Receiver]
Make = Callable[..., Agent]


@function_tool
def find_order(number: int) -> str:
    """Find an order."""
    return f"Order {number} is on its way."


@function_tool(needs_approval=True)
def refund(number: int) -> str:
    """Refund an order."""
    return f"Refunded {number}."


@function_tool(failure_error_function=None)
def broken() -> str:
    """Fail."""
    raise OSError("disk 7 of customer Ann is full")


def call(name: str, **arguments: Any) -> ScriptedToolCall:
    return ScriptedToolCall(name, arguments)


async def test_a_run_is_an_agent_with_its_model_calls_and_tool_calls(sent: Sent, support: Make) -> None:
    prompt = Prompt("support", "3", "Help.", meta={"tone": "warm"})
    agent = support(
        ScriptedToolCall("find_order", {"number": 7}, id="call_7"),
        "It is on its way.",
        instructions=prompt,
        tools=[find_order],
        metadata=lambda _context: {"tenant": "acme", "seats": 3},
    )
    context = await agent.run_async("Where is my order?")
    receiver = sent()
    chat = "chat offline-model"
    assert receiver.tree() == [["invoke_agent support", chat, "execute_tool find_order", chat]]
    run, first, tool, second = receiver.spans
    assert {span.trace_id for span in receiver.spans} == {run.trace_id}
    assert {span.schema_url for span in receiver.spans} == {names.SCHEMA_URL}
    assert {span.scope for span in receiver.spans} == {"kantan_agents"}
    assert {span.status for span in receiver.spans} == {"unset"}
    assert [span.kind for span in receiver.spans] == ["internal", "client", "internal", "client"]
    run_id = context["result"].run_id if hasattr(context["result"], "run_id") else None
    said = run.attributes
    assert said[names.OPERATION] == "invoke_agent"
    assert said[names.AGENT_NAME] == "support"
    assert (said[names.PROMPT_NAME], said[names.PROMPT_VERSION]) == ("support", "3")
    assert (said["kantan_agents.metadata.tenant"], said["kantan_agents.metadata.seats"]) == ("acme", 3)
    assert said["kantan_agents.metadata.prompt_meta_tone"] == "warm"
    assert said[names.TRACE_ID] == f"trace_{said[names.RUN_ID]}"
    assert run_id in (None, said[names.RUN_ID])
    assert (said[names.INPUT_TOKENS], said[names.OUTPUT_TOKENS]) == (20, 10)
    for model in (first, second):
        assert model.attributes[names.OPERATION] == "chat"
        assert model.attributes[names.REQUEST_MODEL] == model.attributes[names.RESPONSE_MODEL]
        assert model.attributes[names.PROVIDER] == "openai"
        assert model.attributes[names.SERVER_ADDRESS] == "127.0.0.1"
        assert model.attributes[names.SERVER_PORT] > 0
        assert (model.attributes[names.INPUT_TOKENS], model.attributes[names.OUTPUT_TOKENS]) == (10, 5)
        assert (model.attributes[names.PROMPT_NAME], model.attributes[names.PROMPT_VERSION]) == (
            "support",
            "3",
        )
    assert first.attributes[names.FINISH_REASONS] == ["tool_call"]
    assert second.attributes[names.FINISH_REASONS] == ["stop"]
    assert tool.attributes[names.TOOL_NAME] == "find_order"
    assert tool.attributes[names.TOOL_CALL_ID] == "call_7"
    assert tool.attributes[names.TOOL_TYPE] == "function"
    assert all(span.attributes[names.TRACE_ID] == said[names.TRACE_ID] for span in receiver.spans)
    assert all(run.start <= span.start <= span.end <= run.end for span in receiver.spans)


async def test_our_trace_and_theirs_find_each_other(
    receiver: Receiver, support: Make, tmp_path: Path, export: Callable[..., OtelExporter]
) -> None:
    exporter = export()
    record_traces(tmp_path / "traces.sqlite3", otel=exporter)
    await support("Hello.").run_async("Hi")
    assert exporter.force_flush(30)
    (stored,) = TraceStore(tmp_path / "traces.sqlite3").traces()
    (run, _) = receiver.spans
    assert run.attributes[names.TRACE_ID] == stored.trace_id
    assert stored.metadata[names.OTEL_TRACE_ID] == run.trace_id
    assert stored.trace_id == f"trace_{run.trace_id}", (
        "without a trace of the application, the digits are the same"
    )
    found = TraceStore(tmp_path / "traces.sqlite3").traces(metadata={names.OTEL_TRACE_ID: run.trace_id})
    assert [one.trace_id for one in found] == [stored.trace_id]


async def test_instructions_without_a_version_are_no_named_prompt(sent: Sent, support: Make) -> None:
    await support("Hello.").run_async("Hi")
    for span in sent().spans:
        assert names.PROMPT_NAME not in span.attributes


async def test_a_streamed_run_says_so(sent: Sent, support: Make) -> None:
    agent = support(call("find_order", number=7), "It is on its way.", tools=[find_order])
    async with agent.stream("Where?") as run:
        async for _ in run:
            pass
    receiver = sent()
    chat = "chat offline-model"
    assert receiver.tree() == [["invoke_agent support", chat, "execute_tool find_order", chat]]
    assert [span.attributes[names.REQUEST_STREAM] for span in receiver.named(chat)] == [True, True]
    assert receiver.named(chat)[0].attributes[names.INPUT_TOKENS] == 10


async def test_a_stream_stopped_after_a_turn_has_the_event(sent: Sent, support: Make) -> None:
    agent = support(call("find_order", number=7), "Never asked for.", tools=[find_order])
    async with agent.stream("Where?") as run:
        async for happened in run:
            if happened.type == "tool_call_started":
                run.cancel(mode="after_turn")
    (event,) = sent().one("invoke_agent support").events
    assert (event.name, event.attributes) == (names.STOPPED, {names.TURNS: 1})


async def test_a_structured_run_wants_json(sent: Sent, support: Make) -> None:
    await support({"city": "Bonn"}, output_type=dict[str, str], output_dest="found").run_async("Where?")
    receiver = sent()
    assert receiver.one("invoke_agent support").attributes[names.OUTPUT_TYPE] == "json"


async def test_each_attempt_at_a_structured_output_is_a_model_call(sent: Sent, support: Make) -> None:
    await support("no JSON", {"score": 1}, output_type=dict[str, int]).run_async("How many?")
    chats = sent().named("chat offline-model")
    assert len(chats) == 2
    assert sent().one("invoke_agent support").attributes[names.INPUT_TOKENS] == 20


async def test_a_delegated_run_is_below_the_tool_call(sent: Sent, offline: Callable[..., Any]) -> None:
    model = offline(
        call("Task", subagent_type="helper", description="look", prompt="Look it up"), "Found.", "Done."
    )
    helper = AgentDefinition(name="helper", description="Looks up.", system_prompt="Look it up.")
    await Agent("boss", "Lead.", model=model, tools=[task_tool([helper])]).run_async("Go")
    receiver = sent()
    chat = "chat offline-model"
    below = ["execute_tool Task", ["invoke_agent helper", chat]]
    assert receiver.tree() == [["invoke_agent boss", chat, below, chat]]
    helper_span, boss = receiver.one("invoke_agent helper"), receiver.one("invoke_agent boss")
    assert helper_span.attributes[names.RUN_ID] != boss.attributes[names.RUN_ID]
    assert helper_span.attributes[names.TRACE_ID] == boss.attributes[names.TRACE_ID]
    assert (boss.attributes[names.INPUT_TOKENS], helper_span.attributes[names.INPUT_TOKENS]) == (20, 10)


async def test_a_hand_off_is_an_event_and_the_target_an_agent_with_its_own_prompt(
    sent: Sent, offline: Callable[..., Any]
) -> None:
    model = offline(call("transfer_to_billing"), "Paid.")
    billing = Agent("billing", Prompt("billing", "9", "Bill."), model=model)
    front = Agent("front", Prompt("front", "1", "Greet."), model=model, handoffs=[billing])
    await front.run_async("I want to pay")
    receiver = sent()
    chat = "chat offline-model"
    assert receiver.tree() == [["invoke_agent front", chat, ["invoke_agent billing", chat]]]
    (event,) = [one for one in receiver.one("invoke_agent front").events if one.name == names.HANDED_OFF]
    assert event.attributes == {names.FROM_AGENT: "front", names.TO_AGENT: "billing"}
    target = receiver.one("invoke_agent billing")
    assert target.attributes[names.PROMPT_VERSION] == "9"
    assert [span.attributes[names.PROMPT_VERSION] for span in receiver.named(chat)] == ["1", "9"]


async def test_a_refused_call_has_the_rule_and_is_an_error(sent: Sent, support: Make) -> None:
    agent = support(call("find_order", number=7), "I may not.", tools=[find_order])
    await agent.run_async("Where?", {"tool_rules": {"params": {"find_order": {"number": {"maximum": 5}}}}})
    tool = sent().one("execute_tool find_order")
    (event,) = tool.events
    assert event.name == names.TOOL_REFUSED
    assert event.attributes[names.CODE] == tool.attributes[names.ERROR_TYPE] == "E17"
    assert event.attributes[names.RULE] == "params: find_order.number.maximum"
    assert event.attributes[names.TOOL_NAME] == "find_order"
    assert names.TOOL_ARGUMENTS not in event.attributes, "arguments are content"
    assert tool.status == "error"
    assert sent().one("invoke_agent support").status == "unset"


async def test_an_approval_is_an_event_of_both_runs(sent: Sent, support: Make) -> None:
    agent = support(ScriptedToolCall("refund", {"number": 7}, id="call_9"), "Done.", tools=[refund])
    context = await agent.run_async("Refund 7")
    state = context["result"].to_state()
    for item in state.get_interruptions():
        state.approve(item)
    await agent.run_async(state, context)
    receiver = sent()
    asked, resumed = receiver.named("invoke_agent support")
    (needed,) = asked.events
    assert needed.name == names.APPROVAL_NEEDED
    assert needed.attributes[names.TOOL_NAME] == "refund"
    assert needed.attributes[names.TOOL_CALL_ID] == "call_9"
    (given,) = resumed.events
    assert given.name == names.APPROVAL_GIVEN
    assert given.attributes[names.ANSWER] == "approved"
    assert given.attributes[names.TOOL_CALL_ID] == "call_9"
    assert resumed.attributes[names.RESUMED] is True
    tool = [span for span in receiver.named("execute_tool refund") if span.parent_id == resumed.span_id]
    assert [span.status for span in tool] == ["unset"]


async def test_a_rejected_approval_says_so(sent: Sent, support: Make) -> None:
    agent = support(call("refund", number=7), "Not done.", tools=[refund])
    context = await agent.run_async("Refund 7")
    state = context["result"].to_state()
    for item in state.get_interruptions():
        state.reject(item)
    await agent.run_async(state, context)
    _, resumed = sent().named("invoke_agent support")
    assert resumed.events[0].attributes[names.ANSWER] == "rejected"


async def test_a_failed_tool_ends_the_run_with_an_error_and_no_text_of_it(sent: Sent, support: Make) -> None:
    with pytest.raises(Exception, match="disk 7"):
        await support(call("broken"), tools=[broken]).run_async("Go")
    receiver = sent()
    tool, run = receiver.one("execute_tool broken"), receiver.one("invoke_agent support")
    assert tool.status == run.status == "error"
    assert tool.attributes[names.ERROR_TYPE]
    assert run.attributes[names.ERROR_TYPE]
    assert not any("disk 7" in repr(span) for span in receiver.spans), "the message of an error is content"


class Picky(ValueError):
    """An exception of a tool's own."""


@function_tool
def picky() -> str:
    """Fail, and let the SDK answer the model."""
    raise Picky("customer Ann")


class Answers(Middleware):
    """Answers the model instead of a tool that has failed."""

    async def tool_call(self, call: ToolCall, call_next: ToolNext) -> Any:
        try:
            return await call_next(call)
        except Picky:
            return "Not now."


@pytest.mark.parametrize("middleware", [[], [Answers()]], ids=["answered by the SDK", "by a middleware"])
async def test_a_tool_that_fails_while_its_run_goes_on_has_the_type_of_its_error(
    sent: Sent, support: Make, middleware: list[Any]
) -> None:
    await support(call("picky"), "Sorry.", tools=[picky], middleware=middleware).run_async("Go")
    receiver = sent()
    tool = receiver.one("execute_tool picky")
    assert (tool.status, tool.attributes[names.ERROR_TYPE]) == ("error", "Picky")
    assert "Ann" not in repr(receiver.spans)
    (metric,) = receiver.points(names.TOOL_DURATION)
    assert metric.attributes[names.ERROR_TYPE] == "Picky"
    assert receiver.one("invoke_agent support").status == "unset"


@pytest.mark.parametrize(
    ("tool", "arguments", "kind"),
    [(picky, {}, "Picky"), (broken, {}, "OSError"), (find_order, {"number": "x"}, "ModelBehaviorError")],
    ids=["answered", "raised", "wrong arguments"],
)
async def test_a_tool_of_a_plain_agent_has_the_type_of_its_error(
    sent: Sent, offline: Callable[..., Any], tool: Any, arguments: dict[str, Any], kind: str
) -> None:
    model = agents.OpenAIResponsesModel("offline-model", offline(call(tool.name, **arguments), "Ok.").client)
    with suppress(agents.UserError):
        await Runner.run(agents.Agent(name="plain", model=model, tools=[tool]), "Hi")
    assert sent().one(f"execute_tool {tool.name}").attributes[names.ERROR_TYPE] == kind


async def test_an_error_of_this_library_in_a_tool_is_its_code(sent: Sent, support: Make) -> None:
    @function_tool
    def careful() -> str:
        """Fail."""
        raise InvalidOptionError(option="x", reason="must be y")

    await support(call("careful"), "Sorry.", tools=[careful]).run_async("Go")
    assert sent().one("execute_tool careful").attributes[names.ERROR_TYPE] == "E75"


async def test_a_failed_model_call_is_an_error(sent: Sent, support: Make) -> None:
    with pytest.raises(Exception, match="400"):
        await support(Reply("no", status=400)).run_async("Go")
    receiver = sent()
    (chat,) = [span for span in receiver.spans if span.name.startswith("chat")]
    assert (chat.status, chat.attributes[names.ERROR_TYPE]) == ("error", "BadRequestError")
    assert chat.attributes[names.REQUEST_MODEL] == "offline-model", "known although there was no answer"
    assert receiver.one("invoke_agent support").status == "error"


async def test_a_cancelled_run_ends_all_its_spans(sent: Sent, support: Make) -> None:
    started, never = asyncio.Event(), asyncio.Event()
    tests = asyncio.all_tasks()
    tasks: list[asyncio.Task[Any]] = []

    @function_tool
    async def wait() -> str:
        """Wait."""
        tasks.extend(asyncio.all_tasks() - tests)
        started.set()
        await never.wait()
        return ""

    task = asyncio.create_task(support(call("wait"), tools=[wait]).run_async("Go"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.gather(*tasks, return_exceptions=True)  # the SDK does not wait for a tool that it cancels
    receiver = sent()
    run, tool = receiver.one("invoke_agent support"), receiver.one("execute_tool wait")
    assert (run.status, run.attributes[names.ERROR_TYPE]) == ("error", "CancelledError")
    assert (tool.status, tool.attributes[names.ERROR_TYPE]) == ("error", "CancelledError")
    assert tool.parent_id == run.span_id


async def test_a_verdict_is_an_evaluation_of_the_judge(sent: Sent, support: Make) -> None:
    await support({"score": 0.25, "comments": ["too short"]}, output_type=RUBRIC, name="judge").run_async("?")
    (event,) = sent().one("invoke_agent judge").events
    assert event.name == "gen_ai.evaluation.result"
    assert event.attributes == {names.EVALUATION_NAME: "judge", names.EVALUATION_SCORE: 0.25}


async def test_a_run_without_tracing_sends_nothing(sent: Sent, support: Make) -> None:
    await support("Hello.").run_async("Hi", run_config=agents.RunConfig(tracing_disabled=True))
    assert sent().spans == []


async def test_runs_in_a_trace_of_the_user_are_below_one_workflow(sent: Sent, support: Make) -> None:
    first, second = support("One."), support("Two.", name="second")
    with agents.trace("Order", group_id="chat-1"):
        await first.run_async("Hi")
        await second.run_async("Hi")
    receiver = sent()
    chat = "chat offline-model"
    workflow = ["invoke_workflow Order", ["invoke_agent support", chat], ["invoke_agent second", chat]]
    assert receiver.tree() == [workflow]
    assert receiver.one("invoke_workflow Order").attributes[names.CONVERSATION_ID] == "chat-1"


def session_of(conversation: str) -> RecordedSession:
    session = RecordedSession([])
    session.session_id, session.groups_traces = conversation, True
    return session


def grouped(receiver: Receiver) -> set[tuple[Any, ...]]:
    """The conversation, session and user of all spans."""
    keys = (names.CONVERSATION_ID, names.SESSION_ID, names.USER_ID)
    return {tuple(span.attributes.get(key) for key in keys) for span in receiver.spans}


@pytest.mark.parametrize(
    ("session", "group"), [("chat-1", None), (None, "chat-1"), ("other", "chat-1")], ids=str
)
async def test_all_spans_of_a_run_have_its_conversation(
    sent: Sent, support: Make, session: str | None, group: str | None
) -> None:
    agent = support(call("find_order", number=7), "Ok.", tools=[find_order])
    options = {} if session is None else {"session": session_of(session)}
    await agent.run_async("Where?", run_config=agents.RunConfig(group_id=group), **options)
    assert grouped(sent()) == {("chat-1", "chat-1", None)}


async def test_a_conversation_that_openai_stores_is_that_of_the_run(sent: Sent, support: Make) -> None:
    await support("Hello.").run_async("Hi", conversation_id="conv_7")
    assert grouped(sent()) == {("conv_7", "conv_7", None)}


class Unborn(RecordedSession):
    """A session that has no id yet, as one that OpenAI keeps."""

    @property
    def session_id(self) -> str:
        raise ValueError("no id yet")


@pytest.mark.parametrize("session", [RecordedSession([]), Unborn([])], ids=["of a replay", "without an id"])
async def test_a_session_without_a_conversation_groups_nothing(
    sent: Sent, support: Make, session: RecordedSession
) -> None:
    session.groups_traces = isinstance(session, Unborn)
    await support("Hello.").run_async("Hi", session=session)
    assert grouped(sent()) == {(None, None, None)}


async def test_a_delegated_run_is_of_the_conversation_around_it(
    sent: Sent, offline: Callable[..., Any]
) -> None:
    model = offline(call("ask"), "Found.", "Done.")

    @function_tool
    async def ask() -> str:
        """Ask a helper that has a session of its own."""
        helper = Agent("helper", "Look.", model=model)
        return str(await helper.run_async("look", session=session_of("its-own")))

    boss = Agent("boss", "Lead.", model=model, tools=[ask])
    await boss.run_async("Go", session=session_of("chat-1"))
    assert grouped(sent()) == {("chat-1", "chat-1", None)}


async def test_runs_in_an_open_trace_without_a_group_have_conversations_of_their_own(
    sent: Sent, support: Make
) -> None:
    with agents.trace("Day"):
        await support("One.").run_async("Hi", session=session_of("chat-1"))
        await support("Two.", name="second").run_async("Hi")
    receiver = sent()
    assert receiver.one("invoke_agent support").attributes[names.SESSION_ID] == "chat-1"
    assert grouped(receiver) == {("chat-1", "chat-1", None), (None, None, None)}


@pytest.mark.parametrize(("user", "sent_user"), [("ann", "ann"), (7, "7"), (None, None), (["a"], None)])
async def test_the_user_of_a_run_is_sent_if_its_key_is_given(
    export: Callable[..., OtelExporter], receiver: Receiver, support: Make, user: Any, sent_user: str | None
) -> None:
    exporter = export(user_key="customer")
    await support("Hello.", metadata={"customer": user}).run_async("Hi")
    assert exporter.force_flush(30)
    assert grouped(receiver) == {(None, None, sent_user)}


async def test_redact_decides_which_conversation_and_user_are_sent(
    export: Callable[..., OtelExporter], receiver: Receiver, support: Make
) -> None:
    exporter = export(user_key="customer", redact=redact_texts(lambda text: text.replace("ann", "x")))
    agent = support("Hello.", metadata={"customer": "ann"})
    await agent.run_async("Hi", session=session_of("chat of ann"))
    assert exporter.force_flush(30)
    assert grouped(receiver) == {("chat of x", "chat of x", "x")}
    assert "ann" not in repr(receiver.spans)


async def test_a_plain_agent_of_the_sdk_is_sent_too(sent: Sent, offline: Callable[..., Any]) -> None:
    client = offline(call("find_order", number=7), "Ok.").client
    model = agents.OpenAIResponsesModel("offline-model", client)
    plain = agents.Agent(name="plain", model=model, tools=[find_order])
    await Runner.run(plain, "Hi")
    chat = "chat offline-model"
    inner = ["invoke_agent plain", chat, "execute_tool find_order", chat]
    assert sent().tree() == [["invoke_workflow Agent workflow", inner]]


async def test_an_agent_as_tool_is_below_the_tool_call(sent: Sent, offline: Callable[..., Any]) -> None:
    model = offline(call("ask_helper", input="look"), "Found.", "Done.")
    helper = Agent("helper", "Look.", model=model)
    tool = helper.as_tool(tool_name="ask_helper", tool_description="Ask.")
    await Agent("boss", "Lead.", model=model, tools=[tool]).run_async("Go")
    chat = "chat offline-model"
    below = ["execute_tool ask_helper", ["invoke_agent helper", chat]]
    assert sent().tree() == [["invoke_agent boss", chat, below, chat]]


async def test_custom_spans_and_guardrails_have_their_names(sent: Sent, support: Make) -> None:
    @agents.input_guardrail
    async def polite(_context: Any, _agent: Any, _input: Any) -> agents.GuardrailFunctionOutput:
        return agents.GuardrailFunctionOutput(None, tripwire_triggered=False)

    with agents.trace("Order"), agents.custom_span("load", {"secret": "x"}):
        await support("Hi.", input_guardrails=[polite]).run_async("Hi")
    receiver = sent()
    assert receiver.one("guardrail polite").attributes[names.TRIGGERED] is False
    assert "secret" not in repr(receiver.one("load"))


async def test_metrics_count_tokens_and_seconds(sent: Sent, support: Make) -> None:
    await support(call("find_order", number=7), "Ok.", tools=[find_order]).run_async("Where?")
    receiver = sent()
    (calls,) = receiver.points(names.INFERENCE_DURATION)
    assert (calls.count, calls.unit, calls.schema_url) == (2, "s", names.SCHEMA_URL)
    assert calls.attributes[names.REQUEST_MODEL] == "offline-model"
    assert calls.attributes[names.OPERATION] == "chat"
    spans = receiver.named("chat offline-model")
    assert calls.sum == pytest.approx(sum(span.end - span.start for span in spans) / 1e9, abs=0.01)
    (given,) = receiver.points(names.INPUT_TOKEN_SUM)
    (answered,) = receiver.points(names.OUTPUT_TOKEN_SUM)
    assert (given.sum, answered.sum, given.unit) == (20, 10, "{token}")
    assert given.attributes[names.TOKEN_MODALITY] == "unknown"
    (per_call,) = receiver.points(names.INPUT_TOKENS_OF_CALL)
    assert (per_call.count, per_call.sum) == (2, 20)
    (tools,) = receiver.points(names.TOOL_DURATION)
    assert (tools.count, tools.attributes[names.TOOL_NAME]) == (1, "find_order")
    (runs,) = receiver.points(names.AGENT_DURATION)
    assert (runs.count, runs.attributes[names.AGENT_NAME]) == (1, "support")


async def test_exemplars_lead_from_a_metric_to_a_span(sent: Sent, support: Make) -> None:
    await support(call("find_order", number=7), "Ok.", tools=[find_order]).run_async("Where?")
    receiver = sent()
    for metric, name in (
        (names.INFERENCE_DURATION, "chat offline-model"),
        (names.INPUT_TOKEN_SUM, "chat offline-model"),
        (names.OUTPUT_TOKENS_OF_CALL, "chat offline-model"),
        (names.TOOL_DURATION, "execute_tool find_order"),
        (names.AGENT_DURATION, "invoke_agent support"),
    ):
        (point,) = receiver.points(metric)
        assert point.exemplars
        assert set(point.exemplars) <= {(span.trace_id, span.span_id) for span in receiver.named(name)}


async def test_metrics_tell_failures_apart(sent: Sent, support: Make) -> None:
    with pytest.raises(Exception, match="400"):
        await support(Reply("no", status=400)).run_async("Go")
    (calls,) = sent().points(names.INFERENCE_DURATION)
    assert calls.attributes[names.ERROR_TYPE] == "BadRequestError"
    assert sent().points(names.INPUT_TOKEN_SUM) == []


async def test_scores_of_an_experiment_are_evaluations_below_the_run(
    sent: Sent, support: Make, tmp_path: Path, exporter: OtelExporter
) -> None:
    from kantan_agents.lab import Case, Dataset, evaluate_async
    from kantan_agents.lab.evaluation.evaluators import exact

    record_traces(tmp_path / "traces.sqlite3", otel=exporter)
    data = Dataset("orders", [Case("Where?", expected="Ok.")])
    agent = support("Ok.")
    await evaluate_async(agent, data, evaluators=[exact()], name="first")
    receiver = sent()
    run = receiver.one("invoke_agent support")
    (scored,) = [span for span in receiver.spans if any("evaluation" in event.name for event in span.events)]
    assert (scored.trace_id, scored.parent_id) == (run.trace_id, run.span_id)
    assert scored.events[0].attributes[names.EVALUATION_SCORE] == 1.0
    assert scored.events[0].attributes[names.EVALUATION_NAME]


async def test_a_judge_agent_of_the_library_scores(sent: Sent, offline: Callable[..., Any]) -> None:
    judge = judge_agent(Prompt("support", "3", "Help."), model=offline({"score": 1, "comments": []}))
    await judge.run_async("An answer")
    (run,) = [span for span in sent().spans if span.name.startswith("invoke_agent")]
    assert [event.name for event in run.events] == ["gen_ai.evaluation.result"]
