"""What a model has answered, held against the schema."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import attrs

from kantan_agents.structured.asking.agent_output import AgentOutput
from kantan_agents.structured.parsing.parse import parsed_values
from kantan_agents.structured.parsing.tolerant import Partial

_FOR_THE_SDK = frozenset(
    {
        "function_call",
        "custom_tool_call",
        "computer_call",
        "local_shell_call",
        "shell_call",
        "apply_patch_call",
        "mcp_approval_request",
    }
)
_LOOKED_AT = 1_000
"""Of how many objects in one reply it is asked whether they fit: a reply may hold a million."""


def final_text(items: list[Any]) -> str | None:
    """Return the text the SDK would take for the answer, that of the last message.

    Returns:
        The text, empty if there is none. None if the answer is no final one, and the SDK's business: it calls
        tools or hands over, whatever it says beside, or the model refuses to answer.
    """
    last: Any = None
    has_more = False
    for item in items:
        kind = getattr(item, "type", None)
        if kind == "message":
            last = item
        elif kind in _FOR_THE_SDK:
            return None
        elif kind != "reasoning":
            has_more = True
    if last is None:
        # After a hosted tool's call alone, the SDK asks for the answer by itself.
        return None if has_more else ""
    text = ""
    for part in last.content:
        if part.type == "refusal":
            return None
        text += getattr(part, "text", None) or ""
    return text


@attrs.frozen
class Reading:
    """What a text is, held against a schema.

    Attributes:
        text: JSON text that fits; None if there is none in it.
        problems: Why not, each like ``"items[0].price: Input should be a valid number"``; empty where
            nothing could be read at all.
        value: What was read and does not fit.
        is_partial: Whether that is only what could be read of something.
    """

    text: str | None
    problems: tuple[str, ...] = ()
    value: Any = None
    is_partial: bool = False


_PARTIAL = "the JSON breaks off, or part of it cannot be read"


def read(text: str, schema: AgentOutput) -> Reading:
    """Return what there is in a text for a schema.

    A text that fits as it is stays as it is; of the values found otherwise the first that fits is taken. What
    is only part of a value is never taken, though it may fit: the rest would be lost without a word.
    """
    if schema.accepts(text):
        return Reading(text)
    best: Reading | None = None
    for found in islice(parsed_values(text, arrays=schema.is_wrapped), _LOOKED_AT):
        if isinstance(found, Partial):
            best = best or Reading(None, (_PARTIAL,), found.value, is_partial=True)
            continue
        examined = schema.examine(found)
        if not examined.problems:
            return Reading(json.dumps(examined.value, ensure_ascii=False))
        best = best or Reading(None, tuple(map(str, examined.problems)), found)
    return best or Reading(None)
