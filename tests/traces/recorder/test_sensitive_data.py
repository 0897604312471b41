"""``trace_include_sensitive_data``: off, no sensitive data is on disk; on, all of it can be found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import agents
import pytest
from agents import GuardrailFunctionOutput, InputGuardrail, OutputGuardrail
from pydantic import BaseModel

from kantan_agents import RUBRIC, Agent, SQLiteRecorder
from kantan_agents.testing import OfflineServer, RecordedRequest, Reply, ReplyLike, ScriptedToolCall
from tests.traces.recorder.database_file import DatabaseFile

pytestmark = pytest.mark.parametrize("api", ["responses", "chat"])

# A word for each place that may hold sensitive data, and whether it is recorded with the switch on.
WORDS = {
    "question": True,
    "tool arguments": True,
    "tool output": True,
    "tool error": True,
    "handoff input": True,
    "answer": True,
    "title": True,
    "comment": True,
    "model error": True,
    "streamed answer": True,
    "inner answer": True,
    # The SDK records only the names of guardrails, and instructions only as part of a model call.
    "input guardrail info": False,
    "output guardrail info": False,
    "instructions": False,
}


def word(place: str) -> str:
    """Return the word for a place; it occurs nowhere else."""
    assert place in WORDS
    return f"quokka {place} quokka"


class Report(BaseModel):
    title: str


class Reason(BaseModel):
    reason: str


async def look_up(query: str) -> str:
    """Look something up."""
    assert query == word("tool arguments")
    return word("tool output")


def return_message(_context: Any, error: Exception) -> str:
    """Return the message to the model; not every version of the SDK does so by default."""
    return str(error)


@agents.function_tool(failure_error_function=return_message)
async def fail() -> str:
    """Fail."""
    raise LookupError(word("tool error"))


async def run_everything(server: OfflineServer, api: str, config: dict[str, Any]) -> None:
    """Run agents so that each word occurs in its place."""

    async def run(*arguments: Any, input: str = word("question"), **options: Any) -> Any:
        bundle = server.bundle(api=api)
        try:
            agent = Agent(*arguments, model=bundle, **options)
            return await agent.run_async(input, {"v": word("instructions")}, run_config=config)
        finally:
            await bundle.client.close()

    instructions = "Answer. {{ $ctx.v }}"
    inner_bundle = server.bundle(api=api)
    inner = Agent("inner", instructions, model=inner_bundle)

    async def ask() -> str:
        """Ask the other agent."""
        context = await inner.run_async(word("question"), {"v": word("instructions")}, run_config=config)
        return str(context["result"].final_output)

    bundle = server.bundle(api=api)
    model_class = {
        "responses": agents.OpenAIResponsesModel,
        "chat": agents.OpenAIChatCompletionsModel,
    }[api]
    expert = agents.Agent(name="expert", model=model_class("m", bundle.client))
    seen = []
    transfer = agents.handoff(
        expert, input_type=Reason, on_handoff=lambda context, data: seen.append(data.reason)
    )
    context = await run("main", instructions, tools=[look_up, fail, ask], handoffs=[transfer])
    assert context["result"].final_output == word("answer")
    assert seen == [word("handoff input")]
    await bundle.client.close()
    await inner_bundle.client.close()

    context = await run("writer", instructions, output_type=Report)
    assert context["result"].final_output.title == word("title")
    await run("grader", instructions, output_type=RUBRIC)
    with pytest.raises(Exception, match="model error"):
        await run("unlucky", instructions)

    def guard(name: str, kind: Any) -> Any:
        async def check(*arguments: Any) -> GuardrailFunctionOutput:
            return GuardrailFunctionOutput(
                output_info=word(f"{name} guardrail info"), tripwire_triggered=True
            )

        return [kind(check, name=f"{name}_guard")]

    with pytest.raises(agents.InputGuardrailTripwireTriggered):
        await run("guarded", instructions, input_guardrails=guard("input", InputGuardrail))
    with pytest.raises(agents.OutputGuardrailTripwireTriggered):
        await run("guarded", instructions, output_guardrails=guard("output", OutputGuardrail))

    bundle = server.bundle(api=api)
    streaming = agents.Agent(name="streaming", model=model_class("m", bundle.client))
    stream = agents.Runner.run_streamed(streaming, word("question"), run_config=agents.RunConfig(**config))
    async for _ in stream.stream_events():
        pass
    assert stream.final_output == word("streamed answer")
    await bundle.client.close()


@pytest.fixture
def server() -> Iterator[OfflineServer]:
    others = iter(
        [word("inner answer"), Reply(word("model error"), status=400), word("answer"), word("answer")]
    )

    def answer(request: RecordedRequest) -> ReplyLike:
        """Choose the reply by the request, as guardrails run concurrently with the model."""
        body = json.dumps(request.body, ensure_ascii=False)
        if request.body.get("stream"):
            return word("streamed answer")
        if "handoff input" in body:
            return word("answer")
        if '"look_up"' in body and "transfer_to_expert" in body:
            if "tool output" not in body:
                arguments = {"query": word("tool arguments")}
                return [
                    ScriptedToolCall("look_up", arguments),
                    ScriptedToolCall("fail"),
                    ScriptedToolCall("ask"),
                ]
            return ScriptedToolCall("transfer_to_expert", {"reason": word("handoff input")})
        if '"comments"' in body:
            return {"score": 0.25, "comments": [word("comment")]}
        if '"title"' in body:
            return {"title": word("title")}
        return next(others)

    with OfflineServer(answer) as server:
        yield server


async def test_with_sensitive_data_off_none_of_it_is_on_disk(
    recorder: SQLiteRecorder, file: DatabaseFile, server: OfflineServer, api: str
) -> None:
    await run_everything(server, api, {"trace_include_sensitive_data": False})
    assert recorder.force_flush()
    assert b"quokka" not in file.bytes()
    recorder.shutdown()
    assert b"quokka" not in file.bytes()
    # Everything that is not content is recorded.
    assert len(file.traces()) == 7
    names = {span.name for span in file.spans()}
    assert {"look_up", "fail", "ask", "input_guard", "output_guard"} <= names
    assert len(file.traces(has_error=True)) >= 4
    assert file.spans(keywords=["quokka"]) == []


async def test_with_sensitive_data_on_all_of_it_can_be_found(
    recorder: SQLiteRecorder, file: DatabaseFile, server: OfflineServer, api: str
) -> None:
    await run_everything(server, api, {})
    assert recorder.force_flush()
    content = file.bytes().decode("utf-8", "replace")
    missing = [place for place, is_recorded in WORDS.items() if is_recorded and word(place) not in content]
    assert missing == []
    for place in ("question", "tool arguments", "tool output", "handoff input", "answer", "title", "comment"):
        assert file.traces(keywords=[word(place)]), place
    (judged,) = file.spans(name="judge")
    assert judged.rubric["comments"] == [word("comment")]


async def test_a_tool_call_is_found_by_kantan_llms_search(
    recorder: SQLiteRecorder, file: DatabaseFile, api: str
) -> None:
    async def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    with OfflineServer(
        [ScriptedToolCall("add", {"a": 1, "b": 2}, id="c1"), "three", "no tool at all"]
    ) as server:
        for question in ("one plus two?", "hello"):
            bundle = server.bundle(api=api)
            await Agent("a", "b", model=bundle, tools=[add]).run_async(question)
            await bundle.client.close()
    assert recorder.force_flush()
    other, found = file.traces()
    assert found.trace_id in [trace.trace_id for trace in file.traces(has_tool_call=True)]
    if api == "responses":
        # With the chat API, kantan-llm treats every message as one with a tool call.
        assert [trace.trace_id for trace in file.traces(has_tool_call=False)] == [other.trace_id]
    assert [trace.trace_id for trace in file.traces(keywords=["one plus two?", "three"])] == [found.trace_id]
    assert [trace.trace_id for trace in file.traces(keywords=["no tool at all"])] == [other.trace_id]
    kind = {"responses": "response", "chat": "generation"}[api]
    calling, answering, *_ = file.spans(trace_id=found.trace_id, span_type=kind)
    assert calling.output_kind == "tool_calls"
    assert "one plus two?" in (calling.input or "")
    assert answering.output is not None and "three" in answering.output
    if api == "responses":
        (call,) = calling.tool_calls or ()
        assert (call["name"], call["call_id"]) == ("add", "c1")
        assert json.loads(call["arguments"]) == {"a": 1, "b": 2}
        assert answering.output == "three"
        assert (answering.input or "").count("function_call_output") == 1
        assert calling.raw["span_data"]["model"] == "offline-model"
    usage = found.metadata["usage_total"]
    assert usage["input_tokens"] >= 20
    assert usage["output_tokens"] >= 10
