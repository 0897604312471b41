"""From a live span or trace to something that no longer changes, in the thread that ends it.

That thread pays for the SDK's ``export`` and for one copy, as JSON; everything else is left to the writer.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from kantan_agents.errors import RedactionError
from kantan_agents.tracing.recorder.output_parts import derived_text, output_parts
from kantan_agents.tracing.recorder.placement import placement
from kantan_agents.tracing.recorder.plain_json import encode, encode_anything, encode_strictly, encode_texts
from kantan_agents.tracing.recorder.response import response_data

Redact = Callable[[dict[str, Any]], "dict[str, Any] | None"]

WITHHELD = "not recorded"

# Spans that the SDK fills with texts and integers and nothing else.
_OF_TEXTS = frozenset({"agent", "guardrail", "handoff", "mcp_tools"})
_OF_TEXTS_IN_CUSTOM = frozenset({"sdk_span_type", "name", "turn", "agent_name", "usage"})


@attrs.define
class TraceSnapshot:
    """A trace; ``packed`` is what it exports, as JSON text."""

    id: str
    packed: str
    queued_at: float = attrs.field(factory=time.monotonic)


@attrs.define
class Derived:
    """What has to be told from live objects, as they become texts on the way.

    Attributes:
        parts: Kind of output, tool calls, structured output and rubric.
        input: The input as one text.
        output: The output as one text.
    """

    parts: list[Any]
    input: str | None
    output: str | None


@attrs.define
class SpanSnapshot:
    """A span that has ended; ``packed`` is what it exports, as JSON text or by ``encode_texts``.

    Attributes:
        derived: What cannot be told from ``packed`` any more; mostly nothing.
    """

    id: str
    packed: str | bytes
    derived: Derived | None = None
    queued_at: float = attrs.field(factory=time.monotonic)


def _packed(exported: dict[str, Any], data: dict[str, Any]) -> str | bytes:
    """Return a copy of what a span exported.

    Raises:
        ValueError, TypeError, RecursionError: There is something in it that is no plain data.
    """
    if _is_of_texts(exported, data):
        try:
            return encode_texts(exported)
        except ValueError:  # half a surrogate pair
            return encode_strictly(exported)
    return encode_strictly(exported)


def _is_of_texts(exported: dict[str, Any], data: dict[str, Any]) -> bool:
    """Whether nothing is in it but texts and integers; False if there may be."""
    if exported.get("error") is not None:
        return False
    get = data.get
    kind = get("type")
    if kind == "custom":
        inner = get("data") or ()
        return "sdk_span_type" in inner and _OF_TEXTS_IN_CUSTOM.issuperset(inner)
    if kind == "function":
        return get("mcp_data") is None and (get("input") is None or type(get("input")) is str)
    if kind == "generation":  # the one with input and answer of the run
        return type(get("input")) is str and type(get("output")) is str and _has_no_model(data)
    return kind in _OF_TEXTS


def _has_no_model(data: dict[str, Any]) -> bool:
    return data.get("model_config") is None and data.get("usage") is None and data.get("model") is None


def snapshot_trace(trace: Any, redact: Redact | None) -> TraceSnapshot | None:
    """Return what is recorded of ``trace``, None of one that is not recorded at all.

    Raises:
        RedactionError: E64, ``redact`` raised or returned something else.
        Exception: What the trace's own ``export`` raised.
    """
    exported = trace.export()
    if not exported:
        return None
    trace_id = exported.get("id") or trace.trace_id
    if redact is not None:
        redacted = _redacted(redact, exported, trace_id)
        if redacted is None:
            return withheld_trace(trace_id)
        exported = {**redacted, "id": trace_id}
    return TraceSnapshot(trace_id, encode_anything(exported))


def snapshot_span(span: Any, redact: Redact | None) -> SpanSnapshot | None:
    """Return what is recorded of ``span``, None of one that is not recorded at all.

    Raises:
        RedactionError: E64, ``redact`` raised or returned something else.
        Exception: What the span's own ``export`` raised.
    """
    exported = span.export()
    if not exported:
        return None
    data = exported.get("span_data") or {}
    if data.get("type") == "response":
        data = exported["span_data"] = {**data, **response_data(span.span_data)}
    if redact is not None:
        redacted = _redacted(redact, exported, span.span_id)
        if redacted is None:
            return withheld_span(span)
        exported = {**redacted, **placement(exported)}  # no redaction may tear a trace apart
        data = exported.get("span_data") or {}
    try:
        return SpanSnapshot(exported["id"], _packed(exported, data))
    except (ValueError, TypeError, RecursionError):
        # Objects in it become texts, and no tool call would be found in a text.
        derived = Derived(
            parts=json.loads(encode_anything(output_parts(data))),
            input=derived_text(data.get("input")),
            output=derived_text(data.get("output")),
        )
        return SpanSnapshot(exported["id"], encode_anything(exported), derived)


def withheld_trace(trace_id: str) -> TraceSnapshot:
    """Return the trace with nothing but its id."""
    return TraceSnapshot(trace_id, encode({"id": trace_id, "workflow_name": trace_id}))


def withheld_span(span: Any) -> SpanSnapshot:
    """Return ``span`` with its place, type and times, and whether it failed, and nothing else."""
    exported = span.export()
    span_type = (exported.get("span_data") or {}).get("type")
    error = {"message": WITHHELD, "data": None} if exported.get("error") else None
    bare = {**placement(exported), "span_data": {"type": span_type}, "error": error}
    return SpanSnapshot(exported["id"], encode(bare))


def _redacted(redact: Redact, exported: Mapping[str, Any], span_id: str) -> dict[str, Any] | None:
    """Return what ``redact`` leaves of a copy of ``exported``, None if nothing.

    Raises:
        RedactionError: E64, it raised or returned something else.
    """
    data = json.loads(encode_anything(exported))
    try:
        redacted = redact(data)
    except Exception as error:
        raise RedactionError(span_id=span_id, reason=f"{type(error).__name__}: {error}") from error
    if redacted is None:
        return None
    if not isinstance(redacted, dict) or not isinstance(redacted.get("span_data") or {}, dict):
        reason = "it must return a dict like the one it got, or None"
        raise RedactionError(span_id=span_id, reason=reason)
    return redacted
