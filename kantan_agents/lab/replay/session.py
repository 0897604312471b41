"""``RecordedSession``: the items that the session of a recorded run had."""

from __future__ import annotations

from typing import Any

from agents.memory import SessionABC

from kantan_agents.traces.capture import RunRecord
from kantan_agents.traces.capture.canonical import copied


class RecordedSession(SessionABC):
    """A session in memory with the items that were in it when the recorded run began.

    Args:
        items: The items.
    """

    session_id = "replay"
    session_settings = None

    def __init__(self, items: list[Any]) -> None:
        self._items = items

    @classmethod
    def of(cls, recorded: RunRecord) -> RecordedSession:
        """Return the session of a run: what its first request has before the input of the run."""
        first = recorded.model_calls[0].request.input if recorded.model_calls else ()
        given = recorded.input
        own = 1 if given is None or isinstance(given, str) else len(given)
        before = [] if isinstance(first, str) else list(first)[: max(0, len(first) - own)]
        return cls([copied(item) for item in before])

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the items, or the newest of them."""
        return list(self._items) if limit is None else self._items[-limit:] if limit else []

    async def add_items(self, items: list[Any]) -> None:
        """Add items."""
        self._items += items

    async def pop_item(self) -> Any:
        """Remove the newest item and return it."""
        return self._items.pop() if self._items else None

    async def clear_session(self) -> None:
        """Remove all items."""
        self._items.clear()
