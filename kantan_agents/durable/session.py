"""A session with the same reads in each process, and each write once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from kantan_agents.durable.journal import Journal
from kantan_agents.errors import NotStorableError


class DurableSession:
    """Wraps the SDK's session of a durable run."""

    def __init__(self, session: Any, journal: Journal) -> None:
        self._session = session
        self._journal = journal
        self._done: Counter[str] = Counter()
        self._last: list[Any] = []

    @property
    def session_id(self) -> str:
        """Id of the session."""
        return str(self._session.session_id)

    @property
    def session_settings(self) -> Any:
        """The SDK's settings of the session."""
        return getattr(self._session, "session_settings", None)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the items of the run's first read."""
        step = self._next("get")
        kept = self._journal.known(step)
        if kept is None:
            items = await self._session.get_items(limit)
            stored = await self._journal.keep(step, {"items": [_plain(item) for item in items]})
        else:
            items, stored = list(kept["items"]), kept
        if limit is None or limit > 0:
            self._last = stored["items"]
        return list(items)

    async def add_items(self, items: list[Any]) -> None:
        """Add items, unless an earlier process has."""
        step = self._next("add")
        plain = [_plain(item) for item in items]
        if self._journal.known(step) is None:
            # If the session ended with the same items before, only their number shows that they were added.
            if items and self._last[-len(items) :] == plain:
                has_them = await self._is_longer(step)
            else:
                has_them = self._journal.was_begun(step) and await self._ends_with(plain)
            if not has_them:
                await self._journal.start(step)
                await self._session.add_items(items)
            await self._journal.keep(step, {})
        self._last = [*self._last, *plain]

    async def pop_item(self) -> Any:
        """Remove the last item, unless an earlier process has, and return it."""
        step = self._next("pop")
        kept = self._journal.known(step)
        if kept is None:
            before = self._journal.known(f"{step}/before")
            items = await self._session.get_items()
            if before is None:
                last = _plain(items[-1]) if items else None
                before = await self._journal.keep(f"{step}/before", {"item": last, "count": len(items)})
            if len(items) == before["count"]:
                await self._session.pop_item()
            kept = await self._journal.keep(step, {"item": before["item"]})
        self._last = self._last[:-1]
        return kept["item"]

    async def clear_session(self) -> None:
        """Remove all items."""
        step = self._next("clear")
        if self._journal.known(step) is None:
            await self._session.clear_session()
            await self._journal.keep(step, {})

    def _next(self, kind: str) -> str:
        self._done[kind] += 1
        return f"session/{kind}/{self._done[kind]}"

    async def _ends_with(self, plain: list[Any]) -> bool:
        last = await self._session.get_items(len(plain)) if plain else []
        return [_plain(item) for item in last] == plain

    async def _is_longer(self, step: str) -> bool:
        count = len(await self._session.get_items())
        before = self._journal.known(f"{step}/before")
        if before is None:
            await self._journal.keep(f"{step}/before", {"count": count})
            return False
        return count > int(before["count"])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._session, name)


def check_session(agent: str, session: Any, opens: Callable[[str], Any] | None) -> Callable[[str], Any]:
    """Return ``opens``, the opener of a run's session; E151 if it is missing."""
    if session is not None and opens is None:
        reason = "cannot be opened by another process; pass Durable(session=...), which returns it by its id"
        raise NotStorableError(agent=agent, what="the session", reason=reason)
    return opens or _no_session


def _no_session(_id: str) -> None: ...


def _plain(item: Any) -> Any:
    data = item if isinstance(item, dict) else item.model_dump(mode="json", exclude_unset=True)
    return json.loads(json.dumps(data, default=str))
