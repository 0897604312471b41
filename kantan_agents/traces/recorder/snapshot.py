"""Immutable copies of ended spans and traces.

The ending thread pays only for the SDK's ``export`` and a copy.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from sys import getsizeof
from typing import Any

import attrs
import msgspec
from agents.tracing.traces import TraceImpl
from kantan_llm.tracing.processors import _extract_output_parts, _normalize_usage, _to_text

from kantan_agents.core.answers import answer_text
from kantan_agents.traces.final_span import recorded_export
from kantan_agents.traces.recorder.plain_json import (
    encode,
    encode_anything,
    encode_indented,
    encode_strictly,
    encode_texts,
)
from kantan_agents.traces.recorder.private_errors import (
    WITHHELD,
    private_error,
    records_sensitive_data,
)
from kantan_agents.traces.recorder.redaction import Redact, call_redact, placement
from kantan_agents.traces.recorder.settled import SettledSpan, copied_contents, data_of

# The SDK fills these only with strings and integers.
_TEXT_ONLY_TYPES = frozenset({"agent", "guardrail", "handoff", "mcp_tools"})
_TEXT_ONLY_CUSTOM_KEYS = frozenset({"sdk_span_type", "name", "turn", "agent_name", "usage"})

_TEXT_ITEMS = {"message", "reasoning"}


_PLAIN = frozenset({str, int, bool, float, type(None)})
_TEXTS = frozenset({str, int, type(None)})

# Size of an item without its strings.
_ITEM_BYTES = 256
# The same for a trace whose metadata is a dict.
_TRACE_BYTES = 1_024


# Runs would wait for the garbage collector, so it ignores these: nothing in them may refer to them.
class TraceSnapshot(msgspec.Struct, eq=False, gc=False):
    """A trace; ``exported`` never changes, or is JSON."""

    id: str
    exported: dict[str, Any] | str | bytes
    size: int


@attrs.define
class Derived:
    """Columns from live objects, because the snapshot has only their strings."""

    parts: list[Any]
    input: str | None
    output: str | None

    def size(self) -> int:
        """Return its approximate bytes."""
        return sum(getsizeof(text) for text in (self.input, self.output)) + 2 * getsizeof(str(self.parts))


@attrs.define(eq=False)
class SpanSnapshot:
    """An ended span; ``packed`` is its export as JSON, a str or the bytes of ``encode_texts``."""

    id: str
    packed: str | bytes
    derived: Derived | None = None
    exported: dict[str, Any] | None = None
    queued_at: float = attrs.field(factory=time.monotonic)
    size: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.size = getsizeof(self.packed) + _ITEM_BYTES
        if self.derived is not None:
            self.size += self.derived.size()


def snapshot_settled(settled: SettledSpan) -> SpanSnapshot:
    """Return a snapshot of a settled span, without an error."""
    exported = {**(recorded_export(settled.span) or {}), "error": None}
    if settled.contents is not None:
        data = data_of(settled.contents)
        copied = {**exported, "span_data": data}
        with suppress(ValueError, TypeError, RecursionError):  # there are objects among them
            return SpanSnapshot(exported["id"], _packed(copied, data), exported=copied)
        # The copy of an object is bytes, so an unchanged span is better.
        if copied_contents(settled.span.span_data) != settled.contents:
            return _snapshot(copied)
    snapshot = _snapshot(exported)
    if snapshot.derived is None:
        snapshot.exported = exported
    return snapshot


def snapshot_trace(trace: Any, redact: Redact | None) -> TraceSnapshot | None:
    """Return a snapshot, or None if the trace exports nothing; raise E64 if ``redact`` fails."""
    exported: dict[str, Any] | None = trace.export()
    if not exported:
        return None
    trace_id = exported.get("id") or trace.trace_id
    if redact is not None:
        redacted = call_redact(redact, exported, trace_id)
        if redacted is None:
            return withheld_trace(trace_id)
        exported = {**redacted, "id": trace_id}
    metadata = exported.get("metadata")
    if (
        type(trace) is TraceImpl
        and type(metadata) is dict
        and _PLAIN.issuperset(map(type, metadata.values()))
    ):
        # So that the writer's thread encodes an unchanged copy.
        exported["metadata"] = {**metadata}
        return TraceSnapshot(trace_id, exported, _TRACE_BYTES + sum(map(getsizeof, metadata.values())))
    return _packed_trace(trace_id, encode_anything(exported))


def _packed_trace(trace_id: str, packed: str) -> TraceSnapshot:
    return TraceSnapshot(trace_id, packed, getsizeof(packed) + _ITEM_BYTES)


def snapshot_span(span: Any, redact: Redact | None) -> SpanSnapshot | None:
    """Return a snapshot; None if the span exports nothing."""
    exported = recorded_export(span)
    if not exported:
        return None
    if exported.get("error") is not None and not records_sensitive_data():
        exported = {**exported, "error": private_error(exported["error"])}
    data = exported.get("span_data") or {}
    if data.get("type") == "response":
        exported["span_data"] = {**data, **response_data(span.span_data)}
    if redact is not None:
        redacted = call_redact(redact, exported, span.span_id)
        if redacted is None:
            return withheld_span(span)
        exported = {**redacted, **placement(exported)}  # a redaction must not break the trace apart
    return _snapshot(exported)


def _snapshot(exported: dict[str, Any]) -> SpanSnapshot:
    data = exported.get("span_data") or {}
    try:
        return SpanSnapshot(exported["id"], _packed(exported, data))
    except (ValueError, TypeError, RecursionError):
        # Objects become strings, in which no tool call would be found.
        derived = Derived(
            parts=json.loads(encode_anything(output_parts(data))),
            input=searchable_text(data.get("input")),
            output=searchable_text(data.get("output")),
        )
        return SpanSnapshot(exported["id"], encode_anything(exported), derived)


def withheld_trace(trace_id: str) -> TraceSnapshot:
    """Return a snapshot with only the id."""
    return _packed_trace(trace_id, encode({"id": trace_id, "workflow_name": trace_id}))


def withheld_span(span: Any) -> SpanSnapshot:
    """Return a snapshot of placement, type and failure, without content."""
    exported = span.export()
    span_type = (exported.get("span_data") or {}).get("type")
    error = {"message": WITHHELD, "data": None} if exported.get("error") else None
    bare = {**placement(exported), "span_data": {"type": span_type}, "error": error}
    return SpanSnapshot(exported["id"], encode(bare))


def _packed(exported: dict[str, Any], data: dict[str, Any]) -> str | bytes:
    if _has_only_texts(exported, data):
        try:
            return encode_texts(exported)
        except ValueError:  # half a surrogate pair
            return encode_strictly(exported)
    return encode_strictly(exported)


def _has_only_texts(exported: dict[str, Any], data: dict[str, Any]) -> bool:
    if exported.get("error") is not None:
        return False
    get = data.get
    kind = get("type")
    if kind == "custom":
        inner = get("data")  # of a turn or task
        return (
            isinstance(inner, dict)
            and "sdk_span_type" in inner
            and _TEXT_ONLY_CUSTOM_KEYS.issuperset(inner)
            and isinstance(usage := inner.get("usage") or {}, dict)
            and _TEXTS.issuperset(map(type, {**usage, **inner, "usage": 0}.values()))
        )
    if kind == "function":
        return get("mcp_data") is None and _TEXTS.issuperset((type(get("input")), type(get("output"))))
    if kind == "generation":  # the final span of a run, with its input and answer
        return type(get("input")) is str and type(get("output")) is str and _has_no_model(data)
    return kind in _TEXT_ONLY_TYPES


def _has_no_model(data: dict[str, Any]) -> bool:
    return data.get("model_config") is None and data.get("usage") is None and data.get("model") is None


def response_data(span_data: Any) -> dict[str, Any]:
    """Return input, output and model, which the SDK does not export.

    The output is a str for pure text, otherwise the list of items.
    """
    data: dict[str, Any] = {}
    given = getattr(span_data, "input", None)
    if given is not None:
        data["input"] = [_as_data(item) for item in given] if isinstance(given, list) else given
    response = getattr(span_data, "response", None)
    if response is None:
        return data
    items = list(getattr(response, "output", None) or ())
    if all(getattr(item, "type", None) in _TEXT_ITEMS for item in items):
        data["output"] = answer_text(items)
    else:
        data["output"] = [_as_data(item) for item in items]
    data["model"] = getattr(response, "model", None)
    return data


def _as_data(item: Any) -> Any:
    if hasattr(item, "model_dump"):
        return item.model_dump(mode="json", exclude_unset=True, warnings=False)
    return item


# Private, but copies might let kantan-llm's search differ for these rows one day.


def searchable_text(value: Any) -> str | None:
    """Return an input or output as the str to search."""
    if value is None:
        return None
    if isinstance(value, str):
        return str.__str__(value)  # the plain str of a subclass, such as an enum
    with suppress(Exception):  # NaN, half a surrogate pair, objects whose __str__ raises
        return encode_indented(value)
    try:
        return str.__str__(_to_text(value))
    except Exception:  # noqa: BLE001 - a __str__ that raises, even when kantan-llm calls it again
        return encode_anything(value)


def output_parts(data: dict[str, Any]) -> tuple[Any, ...]:
    """Return the parts of ``Derived``."""
    output = data.get("output_raw", data.get("output"))
    if type(output) is str and not output.lstrip().startswith("{"):
        output = "0"  # neither contains a rubric, and this is faster to parse than prose
    try:
        parts: tuple[Any, ...] = _extract_output_parts(data, output)
    except Exception:  # noqa: BLE001 - kantan-llm fails on a "type" that is a list, and would lose the span
        return ("structured", None, output, None)
    return parts


def usage_of(exported: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the usage under kantan-llm's names, if any."""
    usage = exported.get("usage") or data.get("usage")
    if not isinstance(usage, dict):
        return None
    normalised: dict[str, Any] = _normalize_usage(usage)
    return normalised
