"""The usual ``redact``: one function for every text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kantan_agents.tracing.recorder.placement import change_content
from kantan_agents.tracing.recorder.snapshot import Redact


def redact_texts(change: Callable[[str], str]) -> Redact:
    """Return a ``redact`` for ``SQLiteRecorder`` that sends every text through ``change``.

    Texts are all strings in inputs, outputs, tool calls, errors, names and metadata, keys included.

    Args:
        change: Gets a text and returns what is recorded in its place.
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
