"""A conversation as a text, for the model that summarises it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kantan_agents.middleware.compact_history.results import cut_text
from kantan_agents.middleware.compact_history.tokens import tokens_of_text

_LONGEST_RESULT = 2_000  # characters
_LONGEST_REASONING = 500
_MEDIA = ("image_url", "file_id", "file_data", "file_url", "result")
_HIDDEN = frozenset(
    {"type", "id", "call_id", "status", "role", "encrypted_content", "annotations", "logprobs"}
)


def transcript_of(items: Iterable[Any]) -> list[str]:
    """Return what was said and done, one text for each item; results of tools are cut."""
    return [entry for entry in map(_entry, items) if entry]


def parts_of(entries: Iterable[str], most: int, count: int) -> list[str]:
    """Return the entries joined to parts of at most ``most`` estimated tokens.

    Args:
        entries: The entries. One that is longer than a part is cut in the middle.
        most: Estimated tokens of a part.
        count: How many parts there may be. If there are more, the oldest are left out.
    """
    parts: list[list[str]] = [[]]
    space = most
    for entry in entries:
        size = tokens_of_text(entry) + 1
        if size > most:
            entry = cut_text(entry, 0.8 * most / size)  # noqa: PLW2901 - the same entry, shorter
            size = tokens_of_text(entry) + 1
        if size > space and parts[-1]:
            parts.append([])
            space = most
        parts[-1].append(entry)
        space -= size
    return ["\n\n".join(part) for part in parts if part][-count:]


def _entry(item: Any) -> str | None:
    if not isinstance(item, Mapping):
        return str(item)
    role, kind = item.get("role"), str(item.get("type") or "message")
    if role is not None:
        return f"[{role}]\n{_text_of(item.get('content'))}"
    if kind == "reasoning":
        text = _text_of(item.get("summary"))
        return f"[reasoning]\n{_shortened(text, _LONGEST_REASONING)}" if text else None
    if "output" in item and kind != "mcp_call":
        return f"[result]\n{_shortened(_text_of(item['output']), _LONGEST_RESULT)}"
    shown = {name: value for name, value in item.items() if name not in _HIDDEN and value is not None}
    shown = {name: "..." if name in _MEDIA else value for name, value in shown.items()}
    text = json.dumps(shown, ensure_ascii=False, default=str)
    return f"[{kind.replace('_', ' ')}]\n{_shortened(text, _LONGEST_RESULT)}"


def _text_of(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, Sequence):
        return "\n".join(filter(None, map(_text_of, content)))
    if not isinstance(content, Mapping):
        return str(content)
    texts = [content.get(name) for name in ("text", "refusal", "transcript", "stdout", "stderr")]
    found = [text for text in texts if isinstance(text, str) and text]
    return "\n".join(found) or f"({content.get('type', 'something')})"


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else cut_text(text, most / len(text))
