"""A result as a person is asked about it: without its scores, its variant and its trace."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from kantan_agents.lab.evaluation.dataset.case import Case
from kantan_agents.lab.evaluation.experiment.results import CaseResult
from kantan_agents.lab.experiment.watching import ToolUse

_LONGEST: Final = 20_000
"""So many characters of a text are shown."""
_MOST: Final = 200
"""So many messages, values and tool calls are shown, the last ones."""


def item_data(name: str, case: Case, result: CaseResult) -> dict[str, Any]:
    """Return what a person sees of a result before the answer.

    Args:
        name: What the window calls it.
        case: Its case.
        result: The result; neither its scores nor anything that names the variant is in the data.
    """
    texts = [("", case.input)] if isinstance(case.input, str) else [_message(one) for one in case.input]
    return {
        "id": name,
        "case": case.id,
        "input": _last([{"name": who, **cut(text)} for who, text in texts]),
        "context": _last([{"name": key, **cut(value)} for key, value in (case.context or {}).items()]),
        "tools": _last([_call(call) for call in result.tool_calls]),
        "output": cut(result.output),
        "expected": None if case.expected is None else cut(case.expected),
        "withheld": result.is_withheld,
    }


def cut(value: Any) -> dict[str, Any]:
    """Return the beginning of a text, or of JSON data as text, and the length of all of it."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return {"text": text[:_LONGEST], "length": len(text)}


def _last(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {"shown": parts[-_MOST:], "count": len(parts)}


def _message(item: Any) -> tuple[str, Any]:
    """Return who says what in an input item."""
    if not isinstance(item, Mapping):
        return "", item
    who = str(item.get("role") or item.get("type") or "")
    content = item.get("content")
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, Mapping)]
        if len(texts) == len(content) and all(isinstance(text, str) for text in texts):
            content = "\n".join(map(str, texts))
    return who, item if content is None else content


def _call(call: ToolUse) -> dict[str, Any]:
    return {
        "name": call.name,
        "arguments": cut(call.arguments),
        "output": None if call.output is None else cut(call.output),
        "refused": call.is_refused,
    }
