"""The results of a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import attrs
from kantan_llm.tracing import SpanRecord

from kantan_agents.traces.capture import ModelCallRecord, PromptRecord, RunRecord, ToolCallRecord

if TYPE_CHECKING:
    # kantan-llm is not marked as typed: mypy would know nothing of its records.
    class StoredSpan(SpanRecord):
        """One span of a stored trace; kantan-llm's ``SpanRecord`` at run time.

        Attributes:
            trace_id: Id of its trace.
            span_id: Its id.
            parent_id: Id of the span around it.
            span_type: The SDK's kind of span: ``"agent"``, ``"function"``, ``"custom"``, ...
            name: Its name, such as a tool's name.
            started_at: Start, in UTC.
            ended_at: End, in UTC.
            ingest_seq: Its position in the order in which spans were stored.
            input: Input, as a str.
            output: Output, as a str.
            output_kind: kantan-llm's classification of the output.
            tool_calls: The tool calls in the output.
            structured: The output as JSON data, if it is JSON.
            rubric: The score and comments of a judge.
            usage: Tokens by kind.
            error: Message and data of its error.
            raw: The span as the SDK exports it.
        """

        trace_id: str
        span_id: str
        parent_id: str | None
        span_type: str | None
        name: str | None
        started_at: datetime | None
        ended_at: datetime | None
        ingest_seq: int
        input: str | None
        output: str | None
        output_kind: str | None
        tool_calls: list[dict[str, Any]] | None
        structured: Any
        rubric: dict[str, Any] | None
        usage: dict[str, Any] | None
        error: dict[str, Any] | None
        raw: dict[str, Any] | None

    class JudgeSpan(StoredSpan):
        """The span of a judge's verdict, with its rubric; kantan-llm's ``SpanRecord`` at run time."""

        rubric: dict[str, Any]

else:
    StoredSpan = JudgeSpan = SpanRecord


@attrs.frozen
class TraceSummary:
    """One trace in brief: its run, its cost and how it ended.

    Attributes:
        trace_id: Id of the trace.
        workflow_name: Name the trace was opened with.
        group_id: Group of the trace, such as a conversation.
        metadata: The trace's metadata, with the standard keys of ``docs/reference/metadata.md``. If the user
            opened the trace around a single run, the run's metadata too.
        started_at: Start of the first span, in UTC; None if there is no span yet.
        ended_at: End of the last span, in UTC; None if the run has not ended, or its process was killed.
        spans: Number of spans so far.
        input: The user's input, from the final ``generation`` span; without that span, the first input found.
        output: The final answer, from the same span; None if the run has not ended. Without that span, as in
            traces of the SDK alone, the last output found.
        error: Message of the error that the run ended with; None if it has not ended. Without a final span,
            the first error found.
        failed_spans: Number of spans with an error, including errors that the run recovered from.
        rubric: The verdict, if the trace has one.
        input_tokens: Sum over the model calls.
        output_tokens: Sum over the model calls.
        total_tokens: Sum over the model calls.
        cut_answers: Number of model answers that were cut off.
    """

    trace_id: str
    workflow_name: str
    group_id: str | None
    metadata: Mapping[str, Any]
    started_at: datetime | None
    ended_at: datetime | None
    spans: int
    input: str | None
    output: str | None
    error: str | None
    failed_spans: int
    rubric: Mapping[str, Any] | None
    input_tokens: int
    output_tokens: int
    total_tokens: int
    cut_answers: int = 0

    @property
    def status(self) -> Literal["ok", "recovered", "failed", "unfinished"]:
        """How the run ended.

        - ``"failed"``: it ended with an error.
        - ``"unfinished"``: it has not ended, or its process was killed.
        - ``"recovered"``: it ended well, although something in it failed, such as a tool.
        - ``"ok"``: it ended well.
        """
        if self.error is not None:
            return "failed"
        if self.ended_at is None:
            return "unfinished"
        return "recovered" if self.failed_spans else "ok"

    @property
    def duration(self) -> float | None:
        """Seconds from the first start to the last end; None if the run has not ended."""
        if self.started_at is None or self.ended_at is None:
            return None
        return (self.ended_at - self.started_at).total_seconds()


@attrs.frozen
class StoredTrace:
    """A trace with its summary, all its spans, and the complete records of its runs.

    Attributes:
        summary: The trace in brief.
        spans: The spans in the order in which they were stored.
        runs: The records of its runs in the order of their starts, including runs inside other runs.
        missing: Descriptions of missing records; empty if all of its runs can be replayed.
    """

    summary: TraceSummary
    spans: Sequence[StoredSpan]
    runs: Sequence[RunRecord] = ()
    missing: Sequence[str] = ()

    @property
    def trace_id(self) -> str:
        """Id of the trace."""
        return self.summary.trace_id

    @property
    def model_calls(self) -> Sequence[ModelCallRecord]:
        """The model calls of all its runs, in the order of their starts."""
        return tuple(sorted((call for run in self.runs for call in run.model_calls), key=_start))

    @property
    def tool_calls(self) -> Sequence[ToolCallRecord]:
        """The tool calls of all its runs, in the order of their starts."""
        return tuple(sorted((call for run in self.runs for call in run.tool_calls), key=_start))

    @property
    def is_complete(self) -> bool:
        """Whether all of its runs are recorded completely."""
        return not self.missing


def _start(call: ModelCallRecord | ToolCallRecord) -> datetime:
    return call.started_at


@attrs.frozen
class PromptStats:
    """Statistics of the runs of one prompt version.

    Attributes:
        prompt_name: Name of the prompt.
        prompt_version: Its version; None for plain str instructions.
        runs: Number of runs; 0 if only verdicts are left.
        failures: Number of failed runs.
        unfinished: Number of runs that have not ended, or whose process was killed.
        scores: Number of verdicts on these runs.
        mean_score: Mean of the scores; None without verdicts.
        input_tokens: Sum over the runs.
        output_tokens: Sum over the runs.
        total_tokens: Sum over the runs.
        latency_p50: Median duration of a run in seconds; None without a finished run.
        latency_p95: 95th percentile of the duration in seconds.
        first_run: Start of the oldest run, in UTC.
        last_run: Start of the latest run, in UTC.
        texts: Number of different recorded prompts; 0 without complete records, more than one if it was
            edited without a new version.
        prompts: The latest of them, at most ten, in the order of their first runs.
    """

    prompt_name: str
    prompt_version: str | None
    runs: int
    failures: int
    scores: int
    mean_score: float | None
    input_tokens: int
    output_tokens: int
    total_tokens: int
    latency_p50: float | None
    latency_p95: float | None
    first_run: datetime | None
    last_run: datetime | None
    texts: int = 0
    prompts: Sequence[PromptRecord] = ()
    unfinished: int = 0

    @property
    def failure_rate(self) -> float | None:
        """Failed runs as a proportion of ended runs; None if none has ended."""
        ended = self.runs - self.unfinished
        return self.failures / ended if ended else None

    @property
    def text(self) -> str | None:
        """The text of its latest prompt; None if it is not recorded."""
        return self.prompts[-1].text if self.prompts else None

    @property
    def prompt_id(self) -> str | None:
        """The id of its latest prompt; None if it is not recorded."""
        return self.prompts[-1].id if self.prompts else None


@attrs.frozen
class IndexResult:
    """The result of building or removing a search index.

    Attributes:
        traces: Number of newly indexed traces.
        skipped: Number of traces that are too long for the index. Searches read them directly.
        bytes_before: Size of the database before, in bytes, its write-ahead log included.
        bytes_after: Size afterwards.
    """

    traces: int
    skipped: int
    bytes_before: int
    bytes_after: int


@attrs.frozen
class PruneResult:
    """The result of pruning, or the expected result for a dry run.

    Attributes:
        traces: Number of deleted traces.
        spans: Number of deleted spans.
        bytes_before: Size of the database before, in bytes, its write-ahead log included.
        bytes_after: Size afterwards; for a dry run, an estimate.
        dry_run: Whether nothing was changed.
        free_bytes: Bytes of the file that are free afterwards, which new traces use first.
    """

    traces: int
    spans: int
    bytes_before: int
    bytes_after: int
    dry_run: bool
    free_bytes: int = 0
