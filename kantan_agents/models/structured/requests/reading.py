"""Finds a reply's text and fitting JSON."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import attrs

from kantan_agents.core.items import CALLS_FOR_SDK
from kantan_agents.models.structured.parsing.parse import parsed_values
from kantan_agents.models.structured.parsing.tolerant import Partial
from kantan_agents.models.structured.requests.agent_output import AgentOutput

_MAX_CANDIDATES = 1_000
"""Maximum validated objects per reply, which may contain a million."""


def final_text(items: list[Any]) -> str | None:
    """Return the last message's text; None for the SDK: tool calls, handoffs, and ``refusal`` parts."""
    last: Any = None
    has_more = False
    for item in items:
        kind = getattr(item, "type", None)
        if kind == "message":
            last = item
        elif kind in CALLS_FOR_SDK:
            return None
        elif kind != "reasoning":
            has_more = True
    if last is None:
        # After a hosted tool's call, the SDK calls the model again.
        return None if has_more else ""
    text = ""
    for part in last.content:
        if part.type == "refusal":
            return None
        text += getattr(part, "text", None) or ""
    return text


@attrs.frozen
class OutputReading:
    """The result of validating a reply.

    ``problems`` is empty without JSON. ``value`` is the first value that does not fit.
    """

    text: str | None
    problems: tuple[str, ...] = ()
    value: Any = None
    is_partial: bool = False


_PARTIAL = "the JSON breaks off, or part of it cannot be read"


def read(text: str, schema: AgentOutput) -> OutputReading:
    """Return the first JSON in a reply that fits a schema.

    Incomplete values do not fit: the rest would be silently lost.
    """
    if schema.accepts(text):
        return OutputReading(text)
    best: OutputReading | None = None
    for found in islice(parsed_values(text, arrays=schema.is_wrapped), _MAX_CANDIDATES):
        if isinstance(found, Partial):
            best = best or OutputReading(None, (_PARTIAL,), found.value, is_partial=True)
            continue
        examined = schema.examine(found)
        if not examined.problems:
            return OutputReading(json.dumps(examined.value, ensure_ascii=False))
        best = best or OutputReading(None, tuple(map(str, examined.problems)), found)
    return best or OutputReading(None)
