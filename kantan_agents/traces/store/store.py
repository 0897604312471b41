"""``TraceStore``: reads a trace database from any thread and from async code."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import anyio
from anyio.to_thread import run_sync
from typing_extensions import Self, Unpack

from kantan_agents.traces.capture import PromptRecord
from kantan_agents.traces.store.filters import Filters, TraceFilters, check_limit, checked_filters
from kantan_agents.traces.store.reader import TraceReader, check_follow
from kantan_agents.traces.store.records import (
    IndexResult,
    JudgeSpan,
    PromptStats,
    PruneResult,
    StoredTrace,
    TraceSummary,
)


class TraceStore(TraceReader):
    """Reads a trace database, whether ``SQLiteRecorder`` or kantan-llm's tracer wrote it.

    Use it to find, read, compare, export and prune recorded runs. Threads can share a store: every call opens
    the file again. In a block of ``with store:`` or ``async with store:``, ``traces`` reuses open
    connections. Each call first flushes the recorders of this process that write to the file. The methods
    ending in ``_async`` do the same work in a worker thread. kantan-llm accepts a store as
    ``TraceSearchService``.

    Args:
        path: The file; it is never created.

    Attributes:
        path: The file.
        default_tz: The time zone of naive times, by default UTC. The records that kantan-llm's own methods
            return have naive times in this zone. All other times are aware, in UTC.

    Raises:
        TraceDatabaseError: E60, the file does not exist or is not a trace database, or a database in Postgres
            does not answer a search for ten minutes.
    """

    async def __aenter__(self) -> Self:
        """Do the same as ``with``."""
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        """Close the file; SQLite may move the content of its write-ahead log first."""
        with anyio.CancelScope(shield=True):
            await run_sync(self.__exit__)

    async def traces_async(
        self, *, limit: int | None = 20, before: str | None = None, **filters: Unpack[TraceFilters]
    ) -> list[TraceSummary]:
        """Do the same as ``traces``."""
        return await run_sync(partial(self.traces, limit=limit, before=before, **filters))

    async def trace_async(self, trace_id: str) -> StoredTrace:
        """Do the same as ``trace``."""
        return await run_sync(self.trace, trace_id)

    async def prompts_async(self, prompt: str | None = None) -> list[PromptStats]:
        """Do the same as ``prompts``."""
        return await run_sync(self.prompts, prompt)

    async def prompt_async(self, prompt_id: str) -> PromptRecord:
        """Do the same as ``prompt``."""
        return await run_sync(self.prompt, prompt_id)

    async def prompt_diff_async(self, prompt: str, old_version: str | None, new_version: str | None) -> str:
        """Do the same as ``prompt_diff``."""
        return await run_sync(self.prompt_diff, prompt, old_version, new_version)

    async def failed_async(
        self,
        threshold: float = 0.5,
        *,
        prompt: str | None = None,
        version: str | None = None,
        limit: int | None = None,
    ) -> list[JudgeSpan]:
        """Do the same as ``failed``."""
        return await run_sync(partial(self.failed, threshold, prompt=prompt, version=version, limit=limit))

    async def prune_async(
        self,
        *,
        older_than: timedelta | None = None,
        keep: int | None = None,
        max_size: int | None = None,
        dry_run: bool = False,
        vacuum: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> PruneResult:
        """Do the same as ``prune``; if canceled, stop after the current transaction.

        ``progress`` is called in the worker thread.
        """
        return await run_sync(
            partial(
                self.prune,
                older_than=older_than,
                keep=keep,
                max_size=max_size,
                dry_run=dry_run,
                vacuum=vacuum,
                progress=_cancellable(progress),
            )
        )

    async def build_index_async(self, *, progress: Callable[[int, int], None] | None = None) -> IndexResult:
        """Do the same as ``build_index``; if canceled, stop after the current transaction.

        ``progress`` is called in the worker thread.
        """
        return await run_sync(partial(self.build_index, progress=_cancellable(progress)))

    async def remove_index_async(self) -> IndexResult:
        """Do the same as ``remove_index``."""
        return await run_sync(self.remove_index)

    def export_async(
        self, *, limit: int | None = None, **filters: Unpack[TraceFilters]
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Do the same as ``export``; the file is read a page of traces at a time."""
        check_limit(limit)
        return self._exported(checked_filters(**filters), limit)

    def follow_async(
        self, *, poll: float = 0.5, started_after: datetime | None = None
    ) -> AsyncGenerator[TraceSummary, None]:
        """Do the same as ``follow``; traces stored after the iteration starts are new."""
        check_follow(poll, started_after)
        return self._followed(poll, started_after)

    async def _exported(self, filters: Filters, limit: int | None) -> AsyncGenerator[dict[str, Any], None]:
        pages = await run_sync(self._export_pages, filters, limit)
        try:
            while (page := await run_sync(next, pages, None)) is not None:
                for trace in page:
                    yield trace
        finally:
            with anyio.CancelScope(shield=True):
                await run_sync(pages.close)

    async def _followed(
        self, poll: float, started_after: datetime | None
    ) -> AsyncGenerator[TraceSummary, None]:
        follower = await run_sync(self._follower, started_after)
        try:
            while True:
                for trace in await run_sync(follower.poll):
                    yield trace
                await anyio.sleep(poll)
        finally:
            with anyio.CancelScope(shield=True):
                await run_sync(follower.close)


def _cancellable(progress: Callable[[int, int], None] | None) -> Callable[[int, int], None]:
    from anyio.from_thread import check_cancelled  # imports ten modules, which no reader needs

    def cancellable(done: int, total: int) -> None:
        if progress is not None:
            progress(done, total)
        check_cancelled()

    return cancellable
