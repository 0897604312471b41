"""Creates the retriever's index on first use."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

from kantan_agents.core.pipeline import loggable
from kantan_agents.errors import NotReplayableError, RetrievalError
from kantan_agents.support.log import get_logger
from kantan_agents.tools.retrieval.options import ToolRetrieval
from kantan_agents.tools.retrieval.retrievers.bm25 import BM25Index
from kantan_agents.tools.retrieval.retrievers.calling import in_own_task, make_index, search_index
from kantan_agents.tools.retrieval.retrievers.retriever import (
    StaleIndexError,
    ToolDocument,
    ToolIndex,
    ToolMatch,
)

_log = get_logger("kantan_agents.retrieval")
_RETRY_AFTER = 30.0
_STEP = 0.02
_REASONS = 100

_Result = TypeVar("_Result")
ItemT = TypeVar("ItemT")

_STEP_SIZE: Final = 100
"""Items between breaks for the event loop: about a millisecond."""


class ToolSearch:
    """Logs each failure once; ``documents`` is called on first use, in a thread."""

    def __init__(
        self, options: ToolRetrieval, documents: Callable[[], Sequence[ToolDocument]], names: frozenset[str]
    ) -> None:
        self._options = options
        self._documents = documents
        self._names = names
        self._lock = threading.Lock()
        self._index: ToolIndex | None = None
        self._in_progress: object | None = None
        self._failed: tuple[float, str] | None = None
        self._discarded_at = -_RETRY_AFTER
        self._logged: set[str] = set()

    @property
    def is_quick(self) -> bool:
        """Whether a search takes almost no time, whatever the limit."""
        return isinstance(self._index, BM25Index) and self._index.is_quick

    async def search(self, text: str, limit: int) -> list[ToolMatch]:
        """Return unique matches, best first; E57, logged once per reason."""
        try:
            index = self._index or await self._made_index()
            if isinstance(index, BM25Index) and index.is_quick:  # synchronous, and returns known names only
                return index.search_now(text, limit)
            found = await self._within(
                self._options.timeout, "search", lambda: search_index(index, text, limit)
            )
        except RetrievalError as error:
            if isinstance(error, StaleIndexError):
                self._discard_index(error)
            self._log(error)
            raise
        known = {match.name: match for match in reversed(found) if match.name in self._names}
        if len(known) == len(found):
            return list(found)
        unknown = [match.name for match in found if match.name not in self._names]
        if unknown:
            self._log(self._error(f"found a tool that this agent does not have: {unknown[0]!r:.100}"))
        return [known.pop(match.name) for match in found if match.name in known]

    async def _made_index(self) -> ToolIndex:
        while True:
            with self._lock:
                if self._index is not None:
                    return self._index
                if self._failed is not None and time.monotonic() < self._failed[0]:
                    raise self._error(self._failed[1])
                waiting = self._in_progress
                if waiting is None:
                    self._in_progress = object()
            if waiting is None:
                return await self._make()
            # Runs in other event loops may wait too, so one loop's event cannot be used.
            while self._in_progress is waiting:  # noqa: ASYNC110
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
        finally:  # if this run is canceled, a waiting run creates the index
            with self._lock:
                self._in_progress = None

    def _discard_index(self, error: RetrievalError) -> None:
        with self._lock:
            now = time.monotonic()
            if now < self._discarded_at + _RETRY_AFTER:  # recreating it did not help
                self._failed = (now + _RETRY_AFTER, error.reason)
            self._discarded_at = now
            self._index = None

    async def _within(self, seconds: float, what: str, ask: Callable[[], Awaitable[_Result]]) -> _Result:
        try:
            with anyio.move_on_after(seconds):
                return await in_own_task(ask)
        except (RetrievalError, NotReplayableError):
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
        _log.warning("tools_not_retrieved", error_code=error.code, reason=loggable(error, str(error)))


async def first_matching(matches: Callable[[ItemT], bool], items: Iterable[ItemT], count: int) -> list[ItemT]:
    """Return the first ``count`` matching items, letting other tasks run."""
    found: list[ItemT] = []
    for number, item in enumerate(items, 1):
        if len(found) >= count:
            break
        if matches(item):
            found.append(item)
        if number % _STEP_SIZE == 0:
            await anyio.lowlevel.checkpoint()
    return found
