"""Reads the conversation before the input of a run, for follow-ups too short to search by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from agents import RunState
from agents.tool_context import ToolContext

from kantan_agents.core.pipeline import current_run, loggable
from kantan_agents.support.log import get_logger
from kantan_agents.tools.retrieval.query import cut, texts_of_user

NEWEST = 50
"""Number of newest items of a conversation that are read."""

_log = get_logger("kantan_agents.retrieval")


async def earlier_items(wrapper: Any) -> Sequence[Any]:
    """Return the newest items of the conversation before a run: of its session, then of its input.

    Args:
        wrapper: The SDK's context of the run.
    """
    if isinstance(wrapper, ToolContext):  # an agent as tool starts a new conversation
        return ()
    run = current_run.get()
    if run is None or wrapper.turn_input:  # if the SDK sets it, it contains the session's items
        return list(wrapper.turn_input or ())[-NEWEST:]
    given = run.input._original_input if isinstance(run.input, RunState) else run.input
    items = given[-NEWEST:] if isinstance(given, list) else []
    session = run.options.get("session")
    if session is None:
        return items
    try:
        stored = await session.get_items(limit=NEWEST)
    except Exception as error:  # noqa: BLE001 - the SDK reads the session as well, and reports the error
        _log.warning("session_not_read", reason=loggable(error, f"{type(error).__name__}: {error!s:.200}"))
        return items
    return [*stored, *items][-NEWEST:]


def earlier_text(items: Sequence[Any], text: str) -> str:
    """Return the user's text before ``text`` in these items or the context's history, "" if there is none."""
    run = current_run.get()
    said = [*texts_of_user(items), *_history(run.context if run is not None else {})]
    return next((cut(one) for one in said if cut(one) != text), "")


def _history(context: dict[str, Any]) -> Iterator[str]:
    entries = context.get("history")
    for entry in reversed(entries[-NEWEST:]) if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("role") == "user" and isinstance(entry.get("text"), str):
            yield entry["text"]
