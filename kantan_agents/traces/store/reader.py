"""The sync methods of ``TraceStore``."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from typing_extensions import Unpack

from kantan_agents.errors import InvalidOptionError, TraceNotFoundError
from kantan_agents.traces.capture import TraceCalls
from kantan_agents.traces.registry import flush_recorders
from kantan_agents.traces.store.candidates import NEWEST
from kantan_agents.traces.store.engine import engine_of
from kantan_agents.traces.store.export import export_pages
from kantan_agents.traces.store.filters import (
    Filters,
    TraceFilters,
    check_limit,
    check_number,
    check_text,
    check_time,
    checked_filters,
)
from kantan_agents.traces.store.follow import (
    Follower,
    follow_traces,
    newest_traces,
    traces_without_spans,
)
from kantan_agents.traces.store.prompts import PromptReader
from kantan_agents.traces.store.read_calls import read_calls
from kantan_agents.traces.store.records import (
    JudgeSpan,
    PruneResult,
    StoredTrace,
    TraceSummary,
)
from kantan_agents.traces.store.resolve_id import resolve_trace_id
from kantan_agents.traces.store.retention import Retention
from kantan_agents.traces.store.summarize import read_summaries, read_trace
from kantan_agents.traces.store.verdicts import failed_verdicts, judged_trace


class TraceReader(PromptReader):
    """Searches and changes a trace database in the calling thread."""

    def traces(
        self,
        *,
        keywords: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        agent: str | None = None,
        prompt: str | None = None,
        version: str | None = None,
        tool: str | None = None,
        has_error: bool | None = None,
        has_failed: bool | None = None,
        has_denial: bool | None = None,
        has_cut_answer: bool | None = None,
        rubric_below: float | None = None,
        started_from: datetime | None = None,
        started_to: datetime | None = None,
        limit: int | None = 20,
        before: str | None = None,
    ) -> list[TraceSummary]:
        """Find the traces that match all filters, latest first.

        Args:
            keywords: Words that must all occur in the inputs or outputs of the trace's spans, ignoring case.
                There are no wildcards. An ASCII letter matches a non-ASCII one only if the word has non-ASCII
                letters too: "STRAßE" finds "strasse", but "strasse" does not find "Straße".
            metadata: Values by key: str, int, float, bool, or None for a missing key. The search includes the
                metadata of the trace and of each run inside it.
            agent: Name of the agent; short for the key ``agent_name``.
            prompt: Name of the prompt; short for ``prompt_name``.
            version: Version of the prompt; short for ``prompt_version``.
            tool: Name of a tool that the model called.
            has_error: Whether a span of the trace has an error, including errors that the run recovered from.
            has_failed: True for runs that ended with an error, False for runs that ended without one. A run
                that has not ended matches neither.
            has_denial: Whether the tool rules denied a call in the trace.
            has_cut_answer: Whether a model's answer in the trace was cut off.
            rubric_below: A verdict in the trace has a score below this.
            started_from: A span of the trace started then or later.
            started_to: The same span started then or earlier.
            limit: Maximum number of traces; None for all.
            before: Only traces stored before the one with this id. For the next page, pass the last id of a
                page.

        Raises:
            InvalidOptionError: E75, an argument is invalid.
            TraceNotFoundError: E61, there is no trace with the id ``before``.
            TraceDatabaseError: E60, the file cannot be read.
        """
        check_limit(limit)
        if before is not None:
            check_text("before", before)
        filters = checked_filters(
            keywords=keywords,
            metadata=metadata,
            agent=agent,
            prompt=prompt,
            version=version,
            tool=tool,
            has_error=has_error,
            has_failed=has_failed,
            has_denial=has_denial,
            has_cut_answer=has_cut_answer,
            rubric_below=rubric_below,
            started_from=started_from,
            started_to=started_to,
        )
        # Views would stay on the connection.
        opened = self._reading(with_views=False) if filters.needs_views else self._reading_again()
        with opened as connection:
            newest = NEWEST if before is None else self._position(connection, before) - 1
            found = engine_of(self.path).find(connection, filters, limit, self.default_tz, newest)
            return read_summaries(connection, found)

    def _position(self, connection: sqlite3.Connection, trace_id: str) -> int:
        row = connection.execute("SELECT rowid FROM main.traces WHERE id = ?", (trace_id,)).fetchone()
        if row is None:
            reason = "it was deleted, or never recorded"
            raise TraceNotFoundError(trace_id=trace_id, path=str(self.path), reason=reason)
        return int(row[0])

    def trace(self, trace_id: str) -> StoredTrace:
        """Return a trace with all its spans.

        Args:
            trace_id: A trace id, a run id, or a unique prefix of either, with or without ``trace_``; or the
                end of a trace id, of at least 8 characters. ``"LAST"`` is the latest trace.

        Raises:
            TraceNotFoundError: E61, no trace matches, or several do.
            TraceDatabaseError: E60, the file cannot be read.
        """
        with self._reading() as connection:
            found = resolve_trace_id(connection, trace_id, self.path)
            trace = read_trace(connection, found)
        if trace is None:
            raise TraceNotFoundError(trace_id=trace_id, path=str(self.path), reason="it was deleted just now")
        return trace

    def failed(
        self,
        threshold: float = 0.5,
        *,
        prompt: str | None = None,
        version: str | None = None,
        limit: int | None = None,
    ) -> list[JudgeSpan]:
        """Return the verdicts with a score below ``threshold``, latest first.

        kantan-llm's ``group_failed_by_bucket`` groups them by their comments. ``judged`` returns the trace of
        the answer.

        Args:
            threshold: The lowest score that is not a failure.
            prompt: Name of the prompt of the judged answer; None for any.
            version: Version of that prompt; None for any.
            limit: Maximum number of verdicts; None for all.

        Returns:
            kantan-llm's records of the ``judge`` spans.

        Raises:
            InvalidOptionError: E75, an argument is invalid.
            TraceDatabaseError: E60, the file cannot be read.
        """
        check_limit(limit)
        check_number("threshold", threshold)
        for name, value in (("prompt", prompt), ("version", version)):
            if value is not None:
                check_text(name, value)
        with (
            self._reading() as connection,
            closing(failed_verdicts(connection, threshold, prompt, version)) as failed,
        ):
            return [*islice(failed, limit)]

    def judged(self, trace_id: str) -> str:
        """Return the id of the trace that the verdict in this trace is about.

        The metadata of the judge's run names it as ``judged_trace_id``. If that is missing or not in the
        file, the result is this trace.

        Args:
            trace_id: As for ``trace``.

        Raises:
            TraceNotFoundError: E61, no trace matches, or several do.
            TraceDatabaseError: E60, the file cannot be read.
        """
        with self._reading() as connection:
            return judged_trace(connection, resolve_trace_id(connection, trace_id, self.path))

    def follow(
        self, *, poll: float = 0.5, started_after: datetime | None = None
    ) -> Generator[TraceSummary, None, None]:
        """Yield each new trace when it is complete; the iterator never ends by itself.

        A trace is complete if its final span is recorded and nothing was added during one ``poll``. Closing
        the iterator closes the file.

        Args:
            poll: Seconds between two checks of the file.
            started_after: Start with the traces that started then or later; None for new traces only.

        Raises:
            InvalidOptionError: E75, an argument is invalid.
            TraceDatabaseError: E60, the file cannot be read, or was deleted or replaced.
        """
        check_follow(poll, started_after)
        return follow_traces(self._follower(started_after), poll)

    def export(
        self, *, limit: int | None = None, **filters: Unpack[TraceFilters]
    ) -> Generator[dict[str, Any], None, None]:
        """Yield traces as flat dicts for JSON or pandas, latest first.

        Each dict has these keys; times are ISO 8601 in UTC:

        - the fields of ``TraceSummary``, with the number of spans as ``span_count``;
        - ``duration``, ``agent_name``, ``prompt_name``, ``prompt_version``, ``prompt_id`` and
          ``agent_run_id``;
        - ``missing``, as in ``StoredTrace``;
        - ``runs``: the complete records of its runs as JSON data;
        - ``spans``: dicts with the fields of kantan-llm's ``SpanRecord``.

        Args:
            limit: Maximum number of traces; None for all.
            **filters: As for ``traces``.

        Raises:
            InvalidOptionError: E75, an argument is invalid.
            TraceDatabaseError: E60, the file cannot be read.
        """
        check_limit(limit)
        return self._export(checked_filters(**filters), limit)

    def recorded_calls(
        self, *, limit: int | None = None, **filters: Unpack[TraceFilters]
    ) -> Generator[TraceCalls, None, None]:
        """Yield the tool calls of the runs in each matching trace, latest trace first.

        For questions about the calls of many runs, such as ``what_if``: much faster than ``trace``. Traces
        without a run of an ``Agent`` are omitted. The file is open, but not locked, until the iterator is
        closed.

        Args:
            limit: Maximum number of traces; None for all.
            **filters: As for ``traces``.

        Raises:
            InvalidOptionError: E75, an argument is invalid.
            TraceDatabaseError: E60, the file cannot be read.
        """
        check_limit(limit)
        checked = checked_filters(**filters)
        flush_recorders(self.path)
        return read_calls(self.path, checked, limit, self.default_tz)

    def prune(
        self,
        *,
        older_than: timedelta | None = None,
        keep: int | None = None,
        max_size: int | None = None,
        dry_run: bool = False,
        vacuum: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> PruneResult:
        """Delete old traces with their spans, and shrink the file.

        A trace is deleted if it exceeds any of the limits, oldest first, in small transactions: other
        processes can write in between. After an error or an interrupt, deleted traces stay deleted, and the
        next call continues.

        A file that this library created shrinks in small transactions too. A file of an earlier version or of
        kantan-llm's tracer does not shrink: new traces use its free space, and ``max_size`` limits the bytes
        in use. Use ``vacuum`` once to change that.

        Args:
            older_than: Delete a trace if its latest span started longer ago than this.
            keep: Number of latest traces to retain.
            max_size: Maximum size of the database in bytes, including its write-ahead log.
            dry_run: Only report the effect, and change nothing.
            vacuum: Rewrite the whole file, so that it shrinks now, and in small transactions from then on.
                This blocks all writers, and temporarily needs free disk space of up to twice the new size.
            progress: Called with the number of traces deleted so far, and of all traces to delete.

        Raises:
            InvalidOptionError: E75, no limit is given, or an argument is invalid.
            TraceDatabaseError: E60, the file cannot be read or changed.
        """
        retention = Retention(older_than=older_than, keep=keep, max_size=max_size)
        flush_recorders(self.path)
        return engine_of(self.path).prune(retention, progress, dry_run=dry_run, vacuum=vacuum)

    def _follower(self, started_after: datetime | None) -> Follower:
        flush_recorders(self.path)
        known = newest_traces(self.path)
        if started_after is None:
            return Follower(self.path, known)
        with self._reading() as connection:
            # Before the search: a trace is stored before its first span.
            just_stored = traces_without_spans(connection, known)
            wanted = Filters(started_from=started_after)
            earlier = engine_of(self.path).find(connection, wanted, None, self.default_tz, NEWEST)
        return Follower(self.path, known, [*reversed(earlier), *just_stored])

    def _export(self, filters: Filters, limit: int | None) -> Generator[dict[str, Any], None, None]:
        with closing(self._export_pages(filters, limit)) as pages:
            for page in pages:
                yield from page

    def _export_pages(
        self, filters: Filters, limit: int | None
    ) -> Generator[list[dict[str, Any]], None, None]:
        flush_recorders(self.path)
        return export_pages(self.path, filters, limit, self.default_tz)


def check_follow(poll: float, started_after: datetime | None) -> None:
    """Raise E75 unless the arguments of ``follow`` are valid."""
    check_number("poll", poll)
    if poll <= 0 or math.isinf(poll):
        raise InvalidOptionError(option="poll", reason=f"must be a number of seconds above 0, not {poll}")
    check_time("started_after", started_after)
