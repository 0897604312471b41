"""What an output consists of: kind, tool calls, structured output, rubric. That is kantan-llm's to say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

# Private names, as kantan-llm has no public ones for them. Written anew here, the two would differ one day,
# and its search would find something else in our rows than in its own.
from kantan_llm.tracing.processors import _extract_output_parts, _normalize_usage, _to_text

from kantan_agents.tracing.recorder.plain_json import (
    decode,
    encode_anything,
    encode_indented,
    encode_metadata,
)


def derived_text(value: Any) -> str | None:
    """Return an input or output as the one text that is searched, None if there is none."""
    if value is None:
        return None
    if type(value) is str:
        return value
    with suppress(Exception):  # NaN, half a surrogate pair, objects with a __str__ that raises
        return encode_indented(value)
    try:
        return str.__str__(_to_text(value))  # of a subclass, an enum's for example, the text itself
    except Exception:  # noqa: BLE001 - a __str__ that raises, and kantan-llm's second try at it as well
        return encode_anything(value)


def output_parts(data: dict[str, Any]) -> tuple[Any, ...]:
    """Return kind of output, tool calls, structured output and rubric of a span's data."""
    output = data.get("output_raw", data.get("output"))
    if type(output) is str and not output.lstrip().startswith("{"):
        output = "0"  # no rubric in either, but of JSON that is told sooner than of prose
    try:
        parts: tuple[Any, ...] = _extract_output_parts(data, output)
    except Exception:  # noqa: BLE001 - kantan-llm stumbles over a "type" that is a list, and loses the span
        return ("structured", None, output, None)
    return parts


def usage_of(exported: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the usage of a span with kantan-llm's names for its numbers, None if there is none."""
    usage = exported.get("usage") or data.get("usage")
    if not isinstance(usage, dict):
        return None
    normalised: dict[str, Any] = _normalize_usage(usage)
    return normalised


def add_usage(metadata_json: str | None, usages: Iterable[Mapping[str, Any]]) -> str:
    """Return a trace's metadata with ``usages`` added to the sum that kantan-llm keeps there."""
    metadata = _loaded(metadata_json)
    total = _total(metadata)
    for usage in usages:
        for name, value in usage.items():
            if isinstance(value, (int, float)):
                before = total.get(name)
                total[name] = (before if isinstance(before, (int, float)) else 0) + value
    metadata["usage_total"] = total
    return encode_metadata(metadata)


def usage_total(metadata_json: str | None) -> dict[str, Any]:
    """Return the sum that kantan-llm keeps in a trace's metadata."""
    return _total(_loaded(metadata_json))


def _total(metadata: Mapping[str, Any]) -> dict[str, Any]:
    total = metadata.get("usage_total")
    return total if isinstance(total, dict) else {}


def _loaded(text: str | None) -> dict[str, Any]:
    try:
        metadata = decode(text or "null")
    except ValueError:
        return {}
    return metadata if isinstance(metadata, dict) else {}
