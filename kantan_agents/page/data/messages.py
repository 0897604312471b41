"""Conversation items as messages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kantan_agents.core.items import is_call, is_result, parsed
from kantan_agents.page.data.cut_texts import cut


def messages_of(items: Any) -> list[dict[str, Any]]:
    """Return a call's input or output as messages."""
    if items is None:
        return []
    if isinstance(items, str):
        return [_message("user", items)]
    listed = items if isinstance(items, Sequence) else [items]
    return [_of_item(item) for item in listed]


def _of_item(item: Any) -> dict[str, Any]:
    if not isinstance(item, Mapping):
        return _message("other", item)
    kind = item.get("type")
    if is_call(item):
        message = _message("call", parsed(item.get("arguments")))
        return {**message, "name": str(item.get("name")), "call_id": str(item.get("call_id"))}
    if is_result(item):
        return {**_message("result", item.get("output")), "call_id": str(item.get("call_id"))}
    if "role" in item:
        return _message(str(item["role"]), _content(item.get("content")))
    if kind == "reasoning":
        return _message("reasoning", _content(item.get("summary")) or item)
    return {**_message("other", item), "name": str(kind)}


def _message(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "text": cut("" if content is None else content)}


def _content(content: Any) -> Any:
    """Parts that are not text, such as pictures, are shown as data."""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return content
    return "\n".join(_part(part) for part in content)


def _part(part: Any) -> str:
    if isinstance(part, Mapping):
        for key in ("text", "refusal"):
            if isinstance(part.get(key), str):
                return str(part[key])
    return json.dumps(part, ensure_ascii=False, default=str)
