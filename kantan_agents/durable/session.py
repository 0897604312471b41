"""``DurableSession``: a session whose reads are the same in each process, and whose writes happen once."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from kantan_agents.durable.journal import Journal


class DurableSession:
    """Wraps the session of a durable run.

    Args:
        session: The SDK's session.
        journal: What is kept of the run.
    """

    def __init__(self, session: Any, journal: Journal) -> None:
        self._session = session
        self._journal = journal
        self._done: Counter[str] = Counter()

    @property
    def session_id(self) -> str:
        """Id of the session."""
        return str(self._session.session_id)

    @property
    def session_settings(self) -> Any:
        """The SDK's settings of the session."""
        return getattr(self._session, "session_settings", None)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the items as they were when the run asked first."""
        step = self._next("get")
        kept = self._journal.known(step)
        if kept is not None:
            return list(kept["items"])
        items = await self._session.get_items(limit)
        await self._journal.keep(step, {"items": [_plain(item) for item in items]})
        return list(items)

    async def add_items(self, items: list[Any]) -> None:
        """Add items, unless an earlier process has."""
        step = self._next("add")
        if self._journal.known(step) is not None:
            return
        # Without this, items would be there twice if a process ends after it has added them.
        was_begun = self._journal.was_begun(step)
        if not (was_begun and items and await self._ends_with(items)):
            await self._journal.start(step)
            await self._session.add_items(items)
        await self._journal.keep(step, {})

    async def pop_item(self) -> Any:
        """Remove the last item and return it."""
        step = self._next("pop")
        kept = self._journal.known(step)
        if kept is not None:
            return kept["item"]
        item = await self._session.pop_item()
        await self._journal.keep(step, {"item": None if item is None else _plain(item)})
        return item

    async def clear_session(self) -> None:
        """Remove all items."""
        step = self._next("clear")
        if self._journal.known(step) is None:
            await self._session.clear_session()
            await self._journal.keep(step, {})

    def _next(self, kind: str) -> str:
        self._done[kind] += 1
        return f"session/{kind}/{self._done[kind]}"

    async def _ends_with(self, items: list[Any]) -> bool:
        last = await self._session.get_items(len(items))
        return [_plain(item) for item in last] == [_plain(item) for item in items]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._session, name)


def _plain(item: Any) -> Any:
    data = item if isinstance(item, dict) else item.model_dump(mode="json", exclude_unset=True)
    return json.loads(json.dumps(data, default=str))
