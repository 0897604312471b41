"""Derives the columns that kantan-llm searches: texts, kind of output, tool calls, rubric, usage."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

# Private functions, as kantan-llm has no public ones. With copies of them, its search might one day find
# something else in these rows than in kantan-llm's own.
from kantan_llm.tracing.processors import _extract_output_parts, _normalize_usage, _to_text

from kantan_agents.traces.recorder.plain_json import encode_anything, encode_indented


def searchable_text(value: Any) -> str | None:
    """Return an input or output as the text that is searched; None for None."""
    if value is None:
        return None
    if type(value) is str:
        return value
    with suppress(Exception):  # NaN, half a surrogate pair, objects whose __str__ raises
        return encode_indented(value)
    try:
        return str.__str__(_to_text(value))  # the plain text of a subclass, such as an enum's
    except Exception:  # noqa: BLE001 - a __str__ that raises, also when kantan-llm calls it again
        return encode_anything(value)


def output_parts(data: dict[str, Any]) -> tuple[Any, ...]:
    """Return kind of output, tool calls, structured output and rubric of a span's data."""
    output = data.get("output_raw", data.get("output"))
    if type(output) is str and not output.lstrip().startswith("{"):
        output = "0"  # neither contains a rubric, and this is faster to parse than prose
    try:
        parts: tuple[Any, ...] = _extract_output_parts(data, output)
    except Exception:  # noqa: BLE001 - kantan-llm fails on a "type" that is a list, and would lose the span
        return ("structured", None, output, None)
    return parts


def usage_of(exported: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the usage of a span under kantan-llm's names; None if it has no usage."""
    usage = exported.get("usage") or data.get("usage")
    if not isinstance(usage, dict):
        return None
    normalised: dict[str, Any] = _normalize_usage(usage)
    return normalised
