"""Converts snapshots to rows of kantan-llm's tables."""

from __future__ import annotations

from typing import Any, NamedTuple

from kantan_agents.support.secrets import mask, may_contain_secret
from kantan_agents.traces.recorder.masking import mask_data, mask_text
from kantan_agents.traces.recorder.plain_json import decode, encode, encode_anything, encode_metadata, spaced
from kantan_agents.traces.recorder.redaction import change_content
from kantan_agents.traces.recorder.snapshot import (
    Derived,
    SpanSnapshot,
    TraceSnapshot,
    output_parts,
    searchable_text,
    usage_of,
)

_NO_CONTENT = (None, None, None, None, None, None, None, "null")


class SpanRow(NamedTuple):
    """A row before its ``ingest_seq``."""

    values: tuple[Any, ...]
    usage: dict[str, Any] | None


def trace_row(snapshot: TraceSnapshot) -> tuple[Any, ...]:
    """Return the masked row of a trace."""
    given = snapshot.exported
    exported: dict[str, Any] = given if isinstance(given, dict) else decode(given)
    metadata = encode_metadata(exported.get("metadata"))
    if may_contain_secret(metadata):
        metadata = encode(mask_data(decode(metadata), mask))
    return (snapshot.id, _masked(exported.get("workflow_name")), _masked(exported.get("group_id")), metadata)


def span_row(snapshot: SpanSnapshot, *, limited: bool) -> SpanRow:
    """Return the masked row of a span, truncated if ``limited``.

    Names and keys are not truncated: searches need them.
    """
    exported: dict[str, Any] = decode(snapshot.packed) if snapshot.exported is None else snapshot.exported
    raw = snapshot.packed if isinstance(snapshot.packed, str) else spaced(snapshot.packed)
    derived = snapshot.derived
    data = exported.get("span_data") or {}
    if derived is None and _has_content(exported, data):
        derived = Derived(
            parts=[*output_parts(data)],
            input=searchable_text(data.get("input")),
            output=searchable_text(data.get("output")),
        )
    # Columns from live objects may contain secrets that their JSON does not.
    is_masked = limited or may_contain_secret(raw) or snapshot.derived is not None
    if is_masked:
        exported = _masked_export(raw)
        raw = encode(exported)
        data = exported.get("span_data") or {}
    place = (
        snapshot.id,
        exported.get("trace_id"),
        exported.get("parent_id"),
        exported.get("started_at"),
        exported.get("ended_at"),
        data.get("type"),
        data.get("name"),
    )
    if derived is None:
        return SpanRow((*place, *_NO_CONTENT, raw), None)
    usage = usage_of(exported, data)
    error = exported.get("error")
    rest = (_json(usage), "null" if error is None else encode_anything(error), raw)
    return SpanRow((*place, *_content(derived, is_masked=is_masked), *rest), usage or None)


def _masked_export(raw: str) -> dict[str, Any]:
    exported: dict[str, Any] = decode(raw)
    masked = change_content(exported, mask_data)
    name = (exported.get("span_data") or {}).get("name")
    if isinstance(name, str):
        masked["span_data"]["name"] = mask(name)  # not truncated: tools are searched by name
    return masked


def _content(derived: Derived, *, is_masked: bool) -> tuple[Any, ...]:
    kind, *parts = derived.parts
    texts = [None if part is None else encode_anything(part) for part in parts]
    if not is_masked:
        return (derived.input, derived.output, kind, *texts)
    texts = [text and encode(mask_data(decode(text))) for text in texts]
    return (_text(derived.input), _text(derived.output), kind, *texts)


def _has_content(exported: dict[str, Any], data: dict[str, Any]) -> bool:
    get = data.get
    if (
        get("input") is not None
        or get("output") is not None
        or get("output_raw") is not None
        or get("usage") is not None
        or get("rubric") is not None
        or exported.get("error") is not None
        or exported.get("usage") is not None
    ):
        return True
    inner = get("data")
    return isinstance(inner, dict) and "rubric" in inner


def _masked(value: Any) -> Any:
    return mask(value) if isinstance(value, str) else value


def _text(text: str | None) -> str | None:
    return None if text is None else mask_text(text)


def _json(value: Any) -> str | None:
    return None if value is None else encode_anything(value)
