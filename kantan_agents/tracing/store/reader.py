"""What one asks of a trace database."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from typing_extensions import Unpack

from kantan_agents.errors import InvalidOptionError, TraceNotFoundError
from kantan_agents.tracing.registry import flush_recorders
from kantan_agents.tracing.store.export import export_pages
from kantan_agents.tracing.store.filters import (
    Filters,
    TraceFilters,
    check_limit,
    check_number,
    check_text,
    check_time,
    checked_filters,
)
from kantan_agents.tracing.store.find import find
from kantan_agents.tracing.store.follow import Follower, follow_traces, newest_traces
from kantan_agents.tracing.store.look_up import look_up
from kantan_agents.tracing.store.prompts import prompt_stats
from kantan_agents.tracing.store.prune import prune_traces
from kantan_agents.tracing.store.records import (
    JudgeSpan,
    PromptStats,
    PruneResult,
    StoredTrace,
    TraceSummary,
)
from kantan_agents.tracing.store.retention import Retention
from kantan_agents.tracing.store.service import SearchService
from kantan_agents.tracing.store.summarise import read_summary, read_trace
from kantan_agents.tracing.store.verdicts import failed_verdicts, judged_trace


class TraceReader(SearchService):
    """The questions, each answered in the thread that asks."""

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
        rubric_below: float | None = None,
        started_from: datetime | None = None,
        started_to: datetime | None = None,
        limit: int | None = 20,
    ) -> list[TraceSummary]:
        """Find the traces for which all of this holds, newest first.

        Args:
            keywords: Words, each of which stands in the input or the output of some span of the trace. Large
                and small letters are the same; ``%`` stands for any text and ``_`` for any character.
            metadata: Values by key: str, int, float or bool, None for a key that is not there. They are
                looked for in the metadata of the trace, and in that of each run inside it.
            agent: Name of the agent; short for the key ``agent_name``.
            prompt: Name of the prompt; short for ``prompt_name``.
            version: Version of the prompt; short for ``prompt_version``.
            tool: Name of a tool that the model called.
            has_error: Whether some span of the trace has an error; also one that the run recovered from.
            rubric_below: A verdict in the trace has a score below this.
            started_from: A span of the trace started then or later.
            started_to: The same span started then or earlier.
            limit: How many traces to return at most; None for all.

        Raises:
            InvalidOptionError: E75, one of these has a value it cannot have.
            TraceDatabaseError: E60, the file cannot be read.
        """
        check_limit(limit)
        filters = checked_filters(
            keywords=keywords,
            metadata=metadata,
            agent=agent,
            prompt=prompt,
            version=version,
            tool=tool,
            has_error=has_error,
            rubric_below=rubric_below,
            started_from=started_from,
            started_to=started_to,
        )
        with self._reading() as connection:
            found = find(connection, filters, limit, self.default_tz)
            traces = [read_summary(connection, trace_id) for trace_id in found]
        return [trace for trace in traces if trace is not None]

    def trace(self, trace_id: str) -> StoredTrace:
        """Return a whole trace.

        Args:
            trace_id: Its id, the id of a run in it, or a beginning of either that no other has; with or
                without ``trace_``. ``"LAST"`` is the newest trace.

        Raises:
            TraceNotFoundError: E61, there is none, or more than one.
            TraceDatabaseError: E60, the file cannot be read.
        """
        with self._reading() as connection:
            found = look_up(connection, trace_id, self.path)
            trace = read_trace(connection, found)
        if trace is None:
            raise TraceNotFoundError(trace_id=trace_id, path=str(self.path), reason="it was deleted just now")
        return trace

    def prompts(self, prompt: str | None = None) -> list[PromptStats]:
        """Compare the versions of each prompt, or of one, by the runs recorded.

        A run counts once, for the prompt of the agent that was asked: one with a trace of its own, or one
        inside an open trace or another run. Agents that it was handed to are part of it. Its tokens are those
        of its own model calls, not of runs inside it. It failed if an error ended it; a tool's error that it
        recovered from is no failure. Latencies are those of runs that ended with an answer, by nearest rank.
        A verdict counts for the answer that the judge's ``judged_trace_id`` names, as long as that is in the
        file, and without that key for the run it stands in.

        Args:
            prompt: Name of the prompt; None for all.

        Returns:
            One record a version: by name, then in the order in which the versions first ran.

        Raises:
            TraceDatabaseError: E60, the file cannot be read.
        """
        if prompt is not None:
            check_text("prompt", prompt)
        with self._reading() as connection:
            return prompt_stats(connection, prompt)

    def failed(
        self,
        threshold: float = 0.5,
        *,
        prompt: str | None = None,
        version: str | None = None,
        limit: int | None = None,
    ) -> list[JudgeSpan]:
        """Return the verdicts with a score below ``threshold``, newest first.

        kantan-llm's ``group_failed_by_bucket`` sorts them by what they complain of; ``judged`` tells the
        trace of the answer.

        Args:
            threshold: The lowest score that is no failure.
            prompt: Name of the prompt that the judged answer came from; None for any.
            version: Version of that prompt; None for any.
            limit: How many to return at most; None for all.

        Returns:
            kantan-llm's records of the ``judge`` spans.

        Raises:
            InvalidOptionError: E75, one of these has a value it cannot have.
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
        """Return the id of the trace that the verdict in this one is about.

        That is the one whose id the judge's run carries as ``judged_trace_id`` in its metadata, if it is
        in the file, else this one.

        Args:
            trace_id: As for ``trace``.

        Raises:
            TraceNotFoundError: E61, there is no such trace, or more than one.
            TraceDatabaseError: E60, the file cannot be read.
        """
        with self._reading() as connection:
            return judged_trace(connection, look_up(connection, trace_id, self.path))

    def follow(
        self, *, poll: float = 0.5, started_after: datetime | None = None
    ) -> Generator[TraceSummary, None, None]:
        """Yield each new trace once it has settled; endlessly.

        A trace has settled when the span that ends it is there and nothing was added during one ``poll``.
        Closing the iterator, or the end of it, closes the file.

        Args:
            poll: Seconds between two looks at the file.
            started_after: Begin with the traces that started then or later; None for those that are not in
                the file yet.

        Raises:
            InvalidOptionError: E75, one of these has a value it cannot have.
            TraceDatabaseError: E60, the file cannot be read, was deleted, or is another one now.
        """
        check_follow(poll, started_after)
        return follow_traces(self._follower(started_after), poll)

    def export(
        self, *, limit: int | None = None, **filters: Unpack[TraceFilters]
    ) -> Generator[dict[str, Any], None, None]:
        """Yield traces as flat dicts that JSON and pandas can take, newest first.

        Each has the fields of ``TraceSummary`` (the number of spans as ``span_count``), ``duration``,
        ``agent_name``, ``prompt_name``, ``prompt_version``, ``prompt_id`` and ``agent_run_id``, and as
        ``spans`` a list of dicts with the fields of kantan-llm's ``SpanRecord``. Times are ISO 8601 in UTC.

        Args:
            limit: How many traces at most; None for all.
            **filters: As for ``traces``.

        Raises:
            InvalidOptionError: E75, a filter has a value it cannot have.
            TraceDatabaseError: E60, the file cannot be read.
        """
        check_limit(limit)
        return self._export(checked_filters(**filters), limit)

    def prune(
        self,
        *,
        older_than: timedelta | None = None,
        keep: int | None = None,
        max_size: int | None = None,
        dry_run: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> PruneResult:
        """Delete old traces with their spans, and make the file smaller.

        A trace goes as soon as one of the limits says so, the oldest first. They are deleted a few at a time,
        so others can go on writing to the file; what is deleted when something fails or interrupts stays
        deleted. Making the file smaller takes as much free space as the file will have.

        Args:
            older_than: A trace goes when its newest span started longer ago than this.
            keep: The newest traces to keep, as a number.
            max_size: How many bytes the database may have, its write-ahead log included.
            dry_run: Only find out what would be deleted; nothing is changed.
            progress: Called with the number of traces deleted so far, and of those to delete.

        Raises:
            InvalidOptionError: E75, there is no limit, or one has a value it cannot have.
            TraceDatabaseError: E60, the file cannot be read or changed.
        """
        retention = Retention(older_than=older_than, keep=keep, max_size=max_size)
        flush_recorders(self.path)
        return prune_traces(self.path, retention, progress, dry_run=dry_run)

    def _follower(self, started_after: datetime | None) -> Follower:
        flush_recorders(self.path)
        known = newest_traces(self.path)
        if started_after is None:
            return Follower(self.path, known)
        with self._reading() as connection:
            earlier = find(connection, Filters(started_from=started_after), None, self.default_tz)
        return Follower(self.path, known, reversed(earlier))

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
    """Make sure that these are values that ``follow`` can have; E75 otherwise."""
    check_number("poll", poll)
    if poll <= 0 or math.isinf(poll):
        raise InvalidOptionError(option="poll", reason=f"must be a number of seconds above 0, not {poll}")
    check_time("started_after", started_after)
