"""The index of one agent's tools: made once, at the first use, whichever run that is."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio
import anyio.to_thread

from kantan_agents.errors import RetrievalError
from kantan_agents.retrieval.options import ToolRetrieval
from kantan_agents.retrieval.retrievers.bm25 import BM25Index
from kantan_agents.retrieval.retrievers.calling import apart, ask_index, make_index
from kantan_agents.retrieval.retrievers.retriever import StaleIndexError, ToolDocument, ToolIndex, ToolMatch
from kantan_agents.support.log import get_logger

_log = get_logger("kantan_agents.retrieval")
_RETRY_AFTER = 30.0
_STEP = 0.02
_REASONS = 100

_Found = TypeVar("_Found")


class Searching:
    """Searches an agent's tools, and says once what keeps it from doing so.

    Args:
        options: How the agent chooses.
        documents: Makes the documents of its tools; called at the first use, in a thread.
        names: The names there are; a match of another name is left out.
    """

    def __init__(
        self, options: ToolRetrieval, documents: Callable[[], Sequence[ToolDocument]], names: frozenset[str]
    ) -> None:
        self._options = options
        self._documents = documents
        self._names = names
        self._lock = threading.Lock()
        self._index: ToolIndex | None = None
        self._under_way: object | None = None
        self._failed: tuple[float, str] | None = None
        self._forgotten_at = -_RETRY_AFTER
        self._logged: set[str] = set()

    @property
    def is_quick(self) -> bool:
        """Whether a search takes next to nothing, however much of the ranking is asked for."""
        return isinstance(self._index, BM25Index) and self._index.is_quick

    async def search(self, text: str, limit: int) -> list[ToolMatch]:
        """Return what fits a text, the best first; names that are unknown or come twice are left out.

        Raises:
            RetrievalError: E57, the retriever failed or took too long; logged, once for each reason.
        """
        try:
            index = self._index or await self._made_index()
            if isinstance(index, BM25Index) and index.is_quick:  # it waits for nothing and names no strangers
                return index.search_now(text, limit)
            found = await self._within(self._options.timeout, "search", lambda: ask_index(index, text, limit))
        except RetrievalError as error:
            if isinstance(error, StaleIndexError):
                self._forget_index(error)
            self._log(error)
            raise
        known = {match.name: match for match in reversed(found) if match.name in self._names}
        if len(known) == len(found):
            return list(found)
        strangers = [match.name for match in found if match.name not in self._names]
        if strangers:
            self._log(self._error(f"found what is no tool of this agent: {strangers[0]!r:.100}"))
        return [known.pop(match.name) for match in found if match.name in known]

    async def _made_index(self) -> ToolIndex:
        while True:
            with self._lock:
                if self._index is not None:
                    return self._index
                if self._failed is not None and time.monotonic() < self._failed[0]:
                    raise self._error(self._failed[1])
                waiting = self._under_way
                if waiting is None:
                    self._under_way = object()
            if waiting is None:
                return await self._make()
            # Runs of other event loops may wait as well, so nothing that belongs to one loop can be used.
            while self._under_way is waiting:  # noqa: ASYNC110
                await anyio.sleep(_STEP)

    async def _make(self) -> ToolIndex:
        async def make() -> ToolIndex:
            documents = await anyio.to_thread.run_sync(self._documents)
            return await make_index(self._options.retriever, documents)

        try:
            made = await self._within(self._options.index_timeout, "index", make)
        except RetrievalError as error:
            with self._lock:
                self._failed = (time.monotonic() + _RETRY_AFTER, error.reason)
            raise
        else:
            with self._lock:
                self._index = made
            return made
        finally:  # a run that is cancelled leaves it to those that wait
            with self._lock:
                self._under_way = None

    def _forget_index(self, error: RetrievalError) -> None:
        with self._lock:
            now = time.monotonic()
            if now < self._forgotten_at + _RETRY_AFTER:  # making it anew does not help
                self._failed = (now + _RETRY_AFTER, error.reason)
            self._forgotten_at = now
            self._index = None

    async def _within(self, seconds: float, what: str, ask: Callable[[], Awaitable[_Found]]) -> _Found:
        try:
            with anyio.move_on_after(seconds):
                return await apart(ask)
        except RetrievalError:
            raise
        except Exception as error:
            raise self._error(f"{what}() raised {type(error).__name__}: {error!s:.200}") from error
        raise self._error(f"{what}() took longer than {seconds:g} s")

    def _error(self, reason: str) -> RetrievalError:
        return RetrievalError(retriever=type(self._options.retriever).__name__, reason=reason)

    def _log(self, error: RetrievalError) -> None:
        with self._lock:
            if error.reason in self._logged or len(self._logged) >= _REASONS:
                return
            self._logged.add(error.reason)
        _log.warning("tools_not_retrieved", error_code=error.code, reason=str(error))
