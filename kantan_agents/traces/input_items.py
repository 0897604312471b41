"""Extracts readable text from a recorded input."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kantan_agents.core.items import is_call, text_of


def question_in(recorded: str) -> str:
    """Return the user's input, or the last message in a list."""
    said = [item.get("content") for item in _items(recorded) if item.get("role") == "user"]
    return next(filter(None, (text_of(content, " ") for content in reversed(said))), recorded)


def newest_item(recorded: str) -> str:
    """Return a model call's new input: the last item and their number."""
    items = _items(recorded)
    if not items:
        return recorded
    last = item_text(items[-1])
    return last if len(items) == 1 else f"{len(items)} items, the last: {last}"


def _items(recorded: str) -> list[Mapping[str, Any]]:
    if not recorded.startswith("["):
        return []
    try:
        items = json.loads(recorded)
    except (ValueError, RecursionError):
        return []
    return items if all(isinstance(item, Mapping) for item in items) else []


def item_text(item: Mapping[str, Any]) -> str:
    """Return an item as text."""
    if "role" in item and (content := text_of(item.get("content"), " ")):
        return f"{item['role']}: {content}"
    if is_call(item):
        arguments = item.get("arguments")
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        return f"{item.get('name')}({'' if arguments is None else text})"
    if isinstance(output := item.get("output"), str):
        return output
    return json.dumps(item, ensure_ascii=False)
