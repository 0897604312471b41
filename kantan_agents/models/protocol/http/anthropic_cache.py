"""Breakpoints for the prompt cache of Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

CacheTtl = Literal["5m", "1h"]
"""Cache lifetime of a prefix after its last use."""

_MOST: Final = 4
_NAME: Final = "cache_control"
_UNMARKABLE: Final = ("thinking", "redacted_thinking")


def with_breakpoints(body: Mapping[str, Any], ttl: CacheTtl) -> dict[str, Any]:
    """Return a request with at most four cache breakpoints."""
    control = {"type": "ephemeral", **({"ttl": ttl} if ttl != "5m" else {})}
    free = _MOST - _count(body)
    marked = dict(body)
    messages = marked.get("messages")
    if isinstance(messages, list):
        messages = marked["messages"] = list(messages)
    newest, earlier = _turns(messages)
    for holder, name in ((newest, "content"), (marked, "system"), (marked, "tools"), (earlier, "content")):
        blocks = None if holder is None else _marked(holder.get(name), control)
        if free > 0 and holder is not None and blocks is not None:
            holder[name] = blocks
            free -= 1
    return marked


def _turns(messages: Any) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Copy the latest message, and the user's before the model's."""
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        return None, None
    found: list[dict[str, Any]] = []
    has_answer = True
    for index in range(len(messages) - 1, -1, -1):
        role = messages[index].get("role")
        if role == "user" and has_answer:
            messages[index] = dict(messages[index])
            found.append(messages[index])
            has_answer = False
            if len(found) == 2:  # noqa: PLR2004 - the latest one and the one before
                break
        elif role == "assistant":
            has_answer = True
    return (*found, None, None)[0], (*found, None, None)[1]


def _marked(blocks: Any, control: Mapping[str, Any]) -> list[Any] | None:
    if isinstance(blocks, str):
        blocks = [{"type": "text", "text": blocks}] if blocks else []
    if not isinstance(blocks, list):
        return None
    for index in range(len(blocks) - 1, -1, -1):
        block = blocks[index]
        if isinstance(block, dict) and _is_markable(block):
            return (
                None if _NAME in block else [*blocks[:index], {**block, _NAME: control}, *blocks[index + 1 :]]
            )
    return None


def _is_markable(block: Mapping[str, Any]) -> bool:
    is_empty = block.get("type") == "text" and not block.get("text")
    return block.get("type") not in _UNMARKABLE and not is_empty and not block.get("defer_loading")


def _count(value: Any) -> int:
    count = 0
    pending = [value]
    while pending:
        inner = pending.pop()
        if isinstance(inner, Mapping):
            count += isinstance(inner.get(_NAME), Mapping)
            pending += [part for name, part in inner.items() if name not in ("input", "input_schema")]
        elif isinstance(inner, list):
            pending += inner
    return count
