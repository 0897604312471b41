"""What a recorded input says: a text, or the JSON list of the SDK's input items."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def asked(recorded: str) -> str:
    """Return what the user said; of a list of items, the user's last message."""
    said = [text for item in _items(recorded) if item.get("role") == "user" and (text := _content(item))]
    return said[-1] if said else recorded


def newest_item(recorded: str) -> str:
    """Return what is new in the input of a model call: of a list of items how many they are, and the last."""
    items = _items(recorded)
    if not items:
        return recorded
    last = _item_text(items[-1])
    return last if len(items) == 1 else f"{len(items)} items, the last: {last}"


def _items(recorded: str) -> list[Mapping[str, Any]]:
    """Return the items; none of a text, of another list, or of one that was cut when it was recorded."""
    if not recorded.startswith("["):
        return []
    try:
        items = json.loads(recorded)
    except (ValueError, RecursionError):
        return []
    return items if all(isinstance(item, Mapping) for item in items) else []


def _item_text(item: Mapping[str, Any]) -> str:
    if "role" in item and (content := _content(item)):
        return f"{item['role']}: {content}"
    if item.get("type") == "function_call":
        return f"{item.get('name')}({item.get('arguments')})"
    if isinstance(output := item.get("output"), str):
        return output
    return json.dumps(item, ensure_ascii=False)


def _content(item: Mapping[str, Any]) -> str:
    content = item.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    return " ".join(text for text in texts if isinstance(text, str))
