"""Redaction: calls the user's ``redact`` function; ``redact_texts`` creates one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from kantan_agents.errors import RedactionError
from kantan_agents.traces.recorder.plain_json import encode_anything

Redact = Callable[[dict[str, Any]], "dict[str, Any] | None"]

# Fields that locate a span in its trace and in time; never redacted.
PLACE = ("object", "id", "trace_id", "parent_id", "started_at", "ended_at")


def placement(exported: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that locate an exported span or trace."""
    return {name: exported.get(name) for name in PLACE}


def change_content(exported: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Apply ``change`` to an exported span or trace, except to its placement and type."""
    changed = {name: value if name in PLACE else change(value) for name, value in exported.items()}
    data = exported.get("span_data")
    if isinstance(data, Mapping) and "type" in data:
        changed["span_data"]["type"] = data["type"]
    return changed


def call_redact(redact: Redact, exported: Mapping[str, Any], span_id: str) -> dict[str, Any] | None:
    """Call ``redact`` with a copy of ``exported``, or raise E64; None omits the content."""
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


def redact_texts(change: Callable[[str], str]) -> Redact:
    """Return a ``redact`` function for ``SQLiteRecorder`` that passes every string through ``change``.

    It covers all strings in inputs, outputs, tool calls, errors, names and metadata, including keys.

    Args:
        change: Receives a string and returns the string to record instead.
    """

    def redact(record: dict[str, Any]) -> dict[str, Any]:
        return change_content(record, lambda value: _changed(value, change))

    return redact


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): _changed(inner, change) for key, inner in value.items()}
    if isinstance(value, list):
        return [_changed(inner, change) for inner in value]
    return value
