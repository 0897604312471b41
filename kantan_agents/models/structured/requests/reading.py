"""Reads a model's answer: finds the final text, and the JSON in it that fits the schema."""

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
"""How many objects of one reply are validated: a reply may contain a million."""


def final_text(items: list[Any]) -> str | None:
    """Return the text that the SDK would take as the answer: that of the last message.

    Returns:
        The text; empty without a message. None if the SDK must handle the response itself, because it calls
        tools, hands off, or is a refusal.
    """
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
        # After only a hosted tool's call, the SDK itself calls the model again.
        return None if has_more else ""
    text = ""
    for part in last.content:
        if part.type == "refusal":
            return None
        text += getattr(part, "text", None) or ""
    return text


@attrs.frozen
class OutputReading:
    """The result of validating a text against a schema.

    Attributes:
        text: JSON text that fits; None if the text contains none.
        problems: Why nothing fits, such as ``"items[0].price: Input should be a valid number"``; empty if no
            JSON was found.
        value: The first value that was found but does not fit.
        is_partial: Whether that value is incomplete.
    """

    text: str | None
    problems: tuple[str, ...] = ()
    value: Any = None
    is_partial: bool = False


_PARTIAL = "the JSON breaks off, or part of it cannot be read"


def read(text: str, schema: AgentOutput) -> OutputReading:
    """Return the first JSON in a text that fits a schema.

    A text that fits as a whole is returned unchanged. An incomplete value is never accepted, even if it fits,
    because the rest would be silently lost.
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
