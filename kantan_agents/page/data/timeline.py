"""The spans of a trace as a timeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from kantan_llm.tracing import SpanRecord

from kantan_agents.core.answers import CUT_SPAN
from kantan_agents.page.data.cut_texts import cut
from kantan_agents.page.data.messages import messages_of
from kantan_agents.traces.capture import ModelCallRecord, ToolCallRecord
from kantan_agents.traces.metadata import JUDGE_SPAN, REFUSAL_SPAN, RUN_SPAN
from kantan_agents.traces.sdk_spans import without_sdk_spans, without_spans
from kantan_agents.traces.span_answers import MODEL_SPANS, read_answer
from kantan_agents.traces.store.records import StoredTrace

# Seconds between the start of a span and of its call's record, on a busy machine.
_APART: Final = 1.0
_KINDS: Final = {"response": "model", "generation": "model", "function": "tool"}
_OWN_KINDS: Final = {REFUSAL_SPAN: "refusal", JUDGE_SPAN: "verdict", CUT_SPAN: "cut"}


def timeline(trace: StoredTrace) -> list[dict[str, Any]]:
    """Return the lines by start, each with its ``parent``.

    ``call`` or ``tool`` is the index of its recorded call in the trace.
    """
    shown = without_sdk_spans(trace.spans)
    runs = {span.span_id for span in shown if _is_run(span)}
    spans = without_spans(shown, {span.span_id for span in shown if _is_mark(span, runs)})
    if not spans and not trace.model_calls:
        spans = shown  # they are all that is known of the run
    begun = trace.summary.started_at or _earliest(spans)
    known = {span.span_id for span in spans}
    models = _joined([span for span in spans if _is_model_call(span)], trace.model_calls)
    tools = _joined([span for span in spans if span.span_type == "function"], trace.tool_calls)
    lines = [_line(span, begun, known, models, tools) for span in spans]
    lines += _recorded_only(trace.model_calls, models, spans, begun, "call")
    lines += _recorded_only(trace.tool_calls, tools, spans, begun, "tool")
    _break_cycles(lines)
    return sorted(lines, key=lambda line: (line["offset"] is None, line["offset"] or 0.0))


def _is_run(span: SpanRecord) -> bool:
    return span.span_type == "custom" and span.name == RUN_SPAN


def _is_mark(span: SpanRecord, runs: set[str]) -> bool:
    """Whether a span only repeats the one around it."""
    # At the end of a run, the recorder writes its output as a generation.
    is_of_run = span.parent_id is None or span.parent_id in runs
    is_output = span.span_type == "generation" and span.name is None and is_of_run
    return not span.error and (is_output or _is_run(span))


def _is_model_call(span: SpanRecord) -> bool:
    return span.span_type in MODEL_SPANS


def _line(
    span: SpanRecord,
    begun: datetime | None,
    known: set[str],
    models: Mapping[str, int],
    tools: Mapping[str, int],
) -> dict[str, Any]:
    own = _OWN_KINDS if span.span_type == "custom" else {}
    call = models.get(span.span_id)
    answer = None if call is not None else read_answer(span)
    return {
        "id": span.span_id,
        "parent": span.parent_id if span.parent_id in known else None,
        "kind": own.get(span.name or "") or _KINDS.get(span.span_type or "", span.span_type or "span"),
        "name": _name(span),
        "offset": _seconds(begun, span.started_at),
        "seconds": _seconds(span.started_at, span.ended_at),
        "error": _message(span.error),
        "input": cut(span.input),
        "output": cut(span.output),
        "answer": messages_of(answer.items) if answer is not None else None,
        "data": cut(_own_data(span)),
        "rubric": span.rubric,
        "usage": span.usage if isinstance(span.usage, dict) else None,
        "call": call,
        "tool": tools.get(span.span_id),
    }


def _joined(
    spans: Sequence[SpanRecord], calls: Sequence[ModelCallRecord] | Sequence[ToolCallRecord]
) -> dict[str, int]:
    """The nearest call in time, of the same tool."""
    found: dict[str, int] = {}
    free = set(range(len(calls)))
    for span in sorted((one for one in spans if one.started_at), key=lambda one: str(one.started_at)):
        near = [
            (abs((calls[place].started_at - span.started_at).total_seconds()), place)
            for place in free
            if span.started_at and _is_alike(span, calls[place])
        ]
        if near and min(near)[0] <= _APART:
            place = min(near)[1]
            free.discard(place)
            found[span.span_id] = place
    return found


def _is_alike(span: SpanRecord, call: ModelCallRecord | ToolCallRecord) -> bool:
    return isinstance(call, ModelCallRecord) or call.tool.name == span.name


def _recorded_only(
    calls: Sequence[ModelCallRecord] | Sequence[ToolCallRecord],
    joined: Mapping[str, int],
    spans: Sequence[SpanRecord],
    begun: datetime | None,
    field: str,
) -> list[dict[str, Any]]:
    """Lines for calls without a span, as of models without tracing."""
    lines = []
    for place in sorted(set(range(len(calls))) - set(joined.values())):
        call = calls[place]
        is_model = isinstance(call, ModelCallRecord)
        lines.append(
            {
                "id": f"{field}-{place}",
                "parent": _agent_span(spans, call.agent, call.started_at),
                "kind": "model" if is_model else "tool",
                "name": call.model if isinstance(call, ModelCallRecord) else call.tool.name,
                "offset": _seconds(begun, call.started_at),
                "seconds": call.seconds,
                "error": None if call.error is None else call.error.message,
                "input": None,
                "output": None,
                "answer": None,
                "data": None,
                "rubric": None,
                "usage": None,
                "call": place if is_model else None,
                "tool": None if is_model else place,
            }
        )
    return lines


def _agent_span(spans: Sequence[SpanRecord], agent: str, time: datetime) -> str | None:
    around = [
        span
        for span in spans
        if span.span_type == "agent" and span.name == agent and span.started_at and span.started_at <= time
    ]
    return around[-1].span_id if around else None


def _break_cycles(lines: list[dict[str, Any]]) -> None:
    """Move lines of a cycle to the top, as in a damaged file."""
    parents = {line["id"]: line["parent"] for line in lines}
    for line in lines:
        seen = {line["id"]}
        above = parents[line["id"]]
        while above is not None and above not in seen:
            seen.add(above)
            above = parents.get(above)
        if above is not None:
            line["parent"] = parents[line["id"]] = None


def _name(span: SpanRecord) -> str:
    if span.span_type in MODEL_SPANS:
        raw = span.raw if isinstance(span.raw, dict) else {}
        data = raw.get("span_data")
        model = data.get("model") if isinstance(data, dict) else None
        return str(model or span.name or span.span_type)
    if span.span_type == "handoff":
        data = _own_data(span) or {}
        return f"{data.get('from_agent')} to {data.get('to_agent')}"
    return str(span.name or span.span_type or "span")


def _own_data(span: SpanRecord) -> dict[str, Any] | None:
    if span.span_type in MODEL_SPANS or span.span_type == "function":
        return None
    raw = span.raw if isinstance(span.raw, dict) else {}
    data = raw.get("span_data")
    return data if isinstance(data, dict) else None


def _message(error: Any) -> str | None:
    if not error:
        return None
    return str(error.get("message") or error) if isinstance(error, dict) else str(error)


def _seconds(start: datetime | None, end: datetime | None) -> float | None:
    return None if start is None or end is None else (end - start).total_seconds()


def _earliest(spans: Sequence[SpanRecord]) -> datetime | None:
    return min((span.started_at for span in spans if span.started_at), default=None)
