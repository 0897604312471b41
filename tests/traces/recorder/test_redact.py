"""``redact``: user-defined rules, applied before a span is queued."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import agents.tracing
import pytest
from agents import custom_span, function_span, generation_span, trace
from agents.tracing import ResponseSpanData
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import Agent, SQLiteRecorder, redact_texts
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from tests.traces.recorder.database_file import DatabaseFile
from tests.traces.recorder.processes import wait_until
from tests.traces.recorder.test_rows import CALL, Model, message, objects, response, values

RecorderAt = Callable[..., SQLiteRecorder]
Logged = Callable[..., list[str]]

PLACE = ("object", "id", "trace_id", "parent_id", "started_at", "ended_at")


def is_json(value: Any) -> bool:
    """Return whether ``value`` consists of JSON types only."""
    if type(value) is dict:
        return all(type(key) is str and is_json(inner) for key, inner in value.items())
    if type(value) is list:
        return all(map(is_json, value))
    return value is None or type(value) in (str, int, float, bool)


def record_response() -> None:
    data = ResponseSpanData(
        response(message("an answer"), CALL), [{"role": "user", "content": "a question"}], {"input_tokens": 1}
    )
    with agents.tracing.get_trace_provider().create_span(data):
        pass


def test_redact_receives_every_span_and_trace_as_json_data(
    recorder_at: RecorderAt, file: DatabaseFile
) -> None:
    seen: list[dict[str, Any]] = []

    def look(record: dict[str, Any]) -> dict[str, Any]:
        seen.append(copy.deepcopy(record))
        return record

    recorder = recorder_at(file.path, redact=look)
    metadata: dict[Any, Any] = {"k": ("v", Model()), 1: {2}}
    data: dict[Any, Any] = {"v": (1, {"k": Model(name="n")}), 2: float("nan")}
    with trace("w", group_id="g", metadata=metadata) as opened:
        record_response()
        with custom_span("c", data) as span:
            span.set_error({"message": "m", "data": {"e": Model()}})
    assert recorder.force_flush()
    assert all(map(is_json, seen))
    first, answered, failed = seen
    assert first["id"] == opened.trace_id
    assert (first["object"], first["workflow_name"], first["group_id"]) == ("trace", "w", "g")
    assert first["metadata"] == {"k": ["v", "name='n' score=0.5"], "1": "{2}"}
    data = answered["span_data"]
    assert data["input"] == [{"role": "user", "content": "a question"}]
    assert [item["type"] for item in data["output"]] == ["message", "function_call"]
    assert data["model"] == "m-1"
    assert failed["error"] == {"message": "m", "data": {"e": "name='n' score=0.5"}}
    assert set(PLACE) <= set(failed)
    assert len(file.spans()) == 2


@given(values, objects)
def test_redact_receives_json_for_any_data(value: Any, metadata: Any) -> None:
    from kantan_agents.traces.recorder.snapshot import snapshot_span, snapshot_trace

    def look(record: dict[str, Any]) -> dict[str, Any]:
        assert is_json(record)
        return record

    opened = trace("w", metadata=metadata)
    assert snapshot_trace(opened, look) is not None
    span = generation_span(input=value, output=value, parent=opened)
    span.set_error({"message": "m", "data": {"v": value}})
    assert snapshot_span(span, look) is not None


def test_changes_are_applied_before_spans_are_queued(recorder_at: RecorderAt, file: DatabaseFile) -> None:
    def change(record: dict[str, Any]) -> dict[str, Any]:
        text = json.dumps(record).replace("quokka", "wombat")
        return json.loads(text)

    recorder = recorder_at(file.path, redact=change, flush_interval=30.0)
    wait_until(lambda: recorder._queue.waking.sleeping)
    recorder._queue.waking.urgent = False  # left over from opening the file
    with trace("quokka workflow", group_id="quokka group", metadata={"quokka key": "quokka value"}):
        with function_span("quokka tool", '{"quokka": 1}', "quokka output") as span:
            span.set_error({"message": "quokka error", "data": {"quokka": "quokka"}})
        with generation_span([{"content": "quokka"}], [{"tool_calls": [{"name": "quokka"}]}], "quokka"):
            pass
        with custom_span("judge", {"rubric": {"score": 0.5, "comments": ["quokka"]}}):
            pass
    waiting = recorder._queue.unwritten()
    assert len(waiting) == 4
    for item in waiting:
        assert "quokka" not in repr(item)
        assert "wombat" in repr(item)
    assert recorder.force_flush()
    assert b"quokka" not in file.bytes()
    (found,) = file.traces(metadata={"wombat key": "wombat value"})
    assert (found.workflow_name, found.group_id) == ("wombat workflow", "wombat group")
    tool, generation, judge = file.spans()
    assert (tool.name, tool.input, tool.output) == ("wombat tool", '{"wombat": 1}', "wombat output")
    assert tool.error == {"message": "wombat error", "data": {"wombat": "wombat"}}
    assert generation.tool_calls == [{"name": "wombat"}]
    assert judge.rubric == {"score": 0.5, "comments": ["wombat"]}


def test_returning_none_leaves_out_the_content_and_keeps_the_placement(
    recorder_at: RecorderAt, file: DatabaseFile, logged: Logged
) -> None:
    recorder = recorder_at(file.path, redact=lambda record: None)
    opened = trace("quokka", group_id="quokka", metadata={"quokka": "quokka"})
    with opened, custom_span("quokka", {"quokka": "quokka"}) as outer:
        with function_span("quokka", "quokka", "quokka") as failed:
            failed.set_error({"message": "quokka", "data": {"quokka": 1}})
        record_response()
    assert recorder.force_flush()
    assert b"quokka" not in file.bytes()
    assert b"a question" not in file.bytes()
    (found,) = file.traces(has_error=True)
    assert found.trace_id == opened.trace_id
    spans = {span.span_type: span for span in file.spans()}
    assert set(spans) == {"custom", "function", "response"}
    assert spans["function"].parent_id == outer.span_id
    assert spans["function"].span_id == failed.span_id
    assert spans["function"].raw["started_at"] == failed.started_at
    assert spans["function"].raw["ended_at"] == failed.ended_at
    assert [span.span_type for span in file.spans(has_error=True)] == ["function"]
    assert all(span.input is span.output is span.name is None for span in spans.values())
    assert logged() == []


def raising(record: dict[str, Any]) -> dict[str, Any]:
    raise LookupError("no rule for this")


@pytest.mark.parametrize(
    ("redact", "reason"),
    [
        (raising, "LookupError: no rule for this"),
        (lambda record: "a text", "must return a dict"),
        (lambda record: [record], "must return a dict"),
        (lambda record: {**record, "span_data": "a text"}, "must return a dict"),
        (lambda record, more: record, "TypeError"),
    ],
)
def test_if_redact_fails_the_content_is_left_out_and_the_error_is_logged_once(
    recorder_at: RecorderAt, file: DatabaseFile, logged: Logged, redact: Any, reason: str
) -> None:
    recorder = recorder_at(file.path, redact=redact)
    with trace("quokka", metadata={"quokka": 1}):
        for _ in range(3):
            with function_span("quokka", "quokka", "quokka") as span:
                span.set_error({"message": "quokka", "data": None})
    assert recorder.force_flush()
    assert b"quokka" not in file.bytes()
    assert len(file.spans(span_type="function", has_error=True)) == 3
    assert len(file.traces()) == 1
    (message_text,) = logged()
    assert message_text.startswith("[kantan-agents][E64] redact failed, span recorded without its content: ")
    assert reason in message_text
    assert recorder.stats().failed == 0


def test_redact_may_return_any_recordable_values(recorder_at: RecorderAt, file: DatabaseFile) -> None:
    def odd(record: dict[str, Any]) -> dict[str, Any]:
        if "span_data" not in record:
            return {"metadata": {"v": Model(), "n": float("nan")}}
        return {
            "span_data": {**record["span_data"], "input": Model(), "output": {1: {2}}},
            "error": {"x": object},
        }

    recorder = recorder_at(file.path, redact=odd)
    with trace("w"), function_span("f", "i", "o"):
        pass
    assert recorder.force_flush()
    (found,) = file.traces()
    assert found.metadata == {"v": "name='n' score=0.5", "n": None}
    (span,) = file.spans(trace_id=found.trace_id)
    assert "name='n'" in (span.input or "")
    assert span.structured == {"1": "{2}"}


@pytest.mark.parametrize("returned", [{}, {"span_data": None}, {"span_data": {}, "error": None}])
def test_removed_data_is_not_recorded(recorder_at: RecorderAt, file: DatabaseFile, returned: Any) -> None:
    recorder = recorder_at(file.path, redact=lambda record: returned)
    opened = trace("quokka", metadata={"quokka": 1})
    with opened, function_span("quokka", "quokka", "quokka") as span:
        pass
    assert recorder.force_flush()
    assert b"quokka" not in file.bytes()
    (found,) = file.spans(trace_id=opened.trace_id)
    assert found.span_id == span.span_id


def test_redact_cannot_move_a_span_or_change_its_times(recorder_at: RecorderAt, file: DatabaseFile) -> None:
    def move(record: dict[str, Any]) -> dict[str, Any]:
        for name in PLACE:
            record[name] = "moved"
        return record

    recorder = recorder_at(file.path, redact=move)
    with trace("w") as opened, custom_span("outer") as outer, custom_span("inner") as inner:
        pass
    assert recorder.force_flush()
    assert [found.trace_id for found in file.traces()] == [opened.trace_id]
    found_inner, found_outer = file.spans(trace_id=opened.trace_id)
    assert (found_inner.span_id, found_inner.parent_id) == (inner.span_id, outer.span_id)
    assert (found_outer.span_id, found_outer.parent_id) == (outer.span_id, None)
    for found, span in ((found_inner, inner), (found_outer, outer)):
        exported = span.export()
        assert exported is not None
        assert {name: found.raw[name] for name in PLACE} == {name: exported[name] for name in PLACE}


def test_secrets_are_masked_after_redact(recorder_at: RecorderAt, file: DatabaseFile) -> None:
    def decode(record: dict[str, Any]) -> dict[str, Any]:
        return json.loads(json.dumps(record).replace("kez-", "sk-"))

    recorder = recorder_at(file.path, redact=decode)
    with trace("w"), function_span("f", "kez-0123456789abc", "o"):
        pass
    assert recorder.force_flush()
    (span,) = file.spans()
    assert span.input == "sk-***"


async def test_redact_does_not_affect_the_data_that_the_agent_uses(
    recorder_at: RecorderAt, file: DatabaseFile
) -> None:
    def spoil(value: Any) -> None:
        if isinstance(value, dict):
            for inner in value.values():
                spoil(inner)
            value.clear()
        elif isinstance(value, list):
            for inner in value:
                spoil(inner)
            value.clear()

    def redact(record: dict[str, Any]) -> dict[str, Any]:
        spoil(record)
        return record

    async def look(words: list[str]) -> dict[str, Any]:
        """Look."""
        return {"found": [words]}

    recorder = recorder_at(file.path, redact=redact)
    model = ScriptedModel(
        [[function_call("look", {"words": ["v"]}, call_id="c")], [assistant_message("answer")]]
    )
    metadata = {"own": {"deep": [1]}}
    agent = Agent("a", "b", model=model, tools=[look], metadata=metadata)
    context = await agent.run_async("question", {"history": []})
    assert context["result"].final_output == "answer"
    assert "found" in str(context["result"].to_input_list())
    assert metadata == {"own": {"deep": [1]}}
    assert len(context["history"]) == 2
    assert recorder.force_flush()
    assert recorder.stats().failed == 0


# redact_texts


def test_redact_texts_passes_every_text_through_the_function(
    recorder_at: RecorderAt, file: DatabaseFile
) -> None:
    recorder = recorder_at(file.path, redact=redact_texts(lambda text: text.replace("quokka", "wombat")))
    with trace("quokka w", group_id="quokka g", metadata={"quokka": ["quokka", {"n": 1}]}) as opened:
        record_response()
        with function_span("quokka f", "quokka i", {"quokka": "quokka"}) as span:
            span.set_error({"message": "quokka e", "data": {"quokka": "quokka"}})
        with generation_span([{"quokka": "quokka"}], [{"tool_calls": [{"function": "quokka"}]}]):
            pass
    assert recorder.force_flush()
    assert b"quokka" not in file.bytes()
    (found,) = file.traces()
    assert found.trace_id == opened.trace_id
    assert found.metadata["wombat"] == ["wombat", {"n": 1}]
    spans = file.spans(trace_id=opened.trace_id)
    assert [span.span_type for span in spans] == ["response", "function", "generation"]
    assert spans[1].name == "wombat f"


@given(st.text(max_size=5), objects)
def test_redact_texts_changes_all_texts_and_nothing_else(replacement: str, data: Any) -> None:
    record = json.loads(
        json.dumps(
            {
                **{name: f"{name} stays" for name in PLACE},
                "span_data": {
                    "type": "custom",
                    "name": "x",
                    "data": {"text": "x", "list": ["x", 1, None, True]},
                },
                "error": {"message": "x", "data": data if is_json(data) else None},
                "workflow_name": "x",
            }
        )
    )
    changed = redact_texts(lambda text: replacement)(copy.deepcopy(record))
    assert changed is not None
    assert {name: changed[name] for name in PLACE} == {name: record[name] for name in PLACE}
    assert changed["workflow_name"] == replacement
    texts, others = [], []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)
        else:
            (texts if isinstance(value, str) else others).append(value)

    walk({name: value for name, value in changed.items() if name not in PLACE})
    assert set(texts) <= {replacement, "custom"}
    unchanged = redact_texts(lambda text: text)(copy.deepcopy(record))
    assert json.dumps(unchanged) == json.dumps(record)


def test_the_content_is_left_out_if_the_function_for_texts_fails(
    recorder_at: RecorderAt, file: DatabaseFile, logged: Logged
) -> None:
    def fail(text: str) -> str:
        raise ValueError(len(text))

    recorder = recorder_at(file.path, redact=redact_texts(fail))
    with trace("quokka"), function_span("quokka", "quokka", "quokka"):
        pass
    assert recorder.force_flush()
    assert b"quokka" not in file.bytes()
    assert len(file.spans(span_type="function")) == 1
    assert all("E64" in message_text for message_text in logged())
