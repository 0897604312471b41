"""The search query: a run's input, or the conversation before a short one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from agents import RunState
from agents.tool_context import ToolContext

from kantan_agents.core.items import get, is_call, text_of
from kantan_agents.core.pipeline import current_run, loggable
from kantan_agents.support.log import get_logger

LONGEST = 4_000
"""Largest number of characters of a query."""

_CALLS = 3
_log = get_logger("kantan_agents.retrieval")
_NEWEST = 50
"""Number of latest items of a conversation that are read."""


def cut(text: str) -> str:
    """Return ``text``, or the start and end of a long one."""
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]}\n{text[-half:]}"


def newest_text(given: Any) -> str:
    """Return the user's latest text in a str, input items, or a tool's arguments."""
    if isinstance(given, str):
        return cut(given)
    if isinstance(given, dict):
        return cut(_as_text(given.get("input", given)))
    return cut(next(texts_of_user(given), "")) if isinstance(given, Sequence) else ""


def texts_of_user(items: Sequence[Any]) -> Iterator[str]:
    """Yield messages, latest first."""
    for item in reversed(items):
        if isinstance(item, dict) and item.get("role") == "user":
            text = text_of(item.get("content"))
            if text.strip():
                yield text


def with_calls(text: str, calls: Sequence[str]) -> str:
    """Add the latest called tools' names."""
    return f"{text}\n{' '.join(dict.fromkeys(calls[-_CALLS:]))}" if calls else text


def calls_in(items: Iterable[Any]) -> list[str]:
    """Return called function tools."""
    raw = (getattr(item, "raw_item", item) for item in items)
    names = (get(one, "name") for one in raw if is_call(one))
    return [name for name in names if isinstance(name, str)]


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return ""


async def earlier_items(wrapper: Any) -> Sequence[Any]:
    """Return the latest items before a run: of its session, then of its input."""
    if isinstance(wrapper, ToolContext):  # an agent as a tool starts a new conversation
        return ()
    run = current_run.get()
    if run is None or wrapper.turn_input:  # if the SDK sets it, it contains the session's items
        return list(wrapper.turn_input or ())[-_NEWEST:]
    given = run.input._original_input if isinstance(run.input, RunState) else run.input
    items = given[-_NEWEST:] if isinstance(given, list) else []
    session = run.options.get("session")
    if session is None:
        return items
    try:
        stored = await session.get_items(limit=_NEWEST)
    except Exception as error:  # noqa: BLE001 - the SDK reads the session as well, and reports the error
        _log.warning("session_not_read", reason=loggable(error, f"{type(error).__name__}: {error!s:.200}"))
        return items
    return [*stored, *items][-_NEWEST:]


def earlier_text(items: Sequence[Any], text: str) -> str:
    """Return the user's text before ``text``, or ""."""
    run = current_run.get()
    said = [*texts_of_user(items), *_history(run.context if run is not None else {})]
    return next((cut(one) for one in said if cut(one) != text), "")


def _history(context: dict[str, Any]) -> Iterator[str]:
    entries = context.get("history")
    for entry in reversed(entries[-_NEWEST:]) if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("role") == "user" and isinstance(entry.get("text"), str):
            yield entry["text"]
