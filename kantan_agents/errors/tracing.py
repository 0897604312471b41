"""E60 to E69: tracing."""

from __future__ import annotations

from kantan_agents.errors.root import KantanAgentsError


class TraceDatabaseError(KantanAgentsError):
    """A trace database cannot be opened, read or changed.

    Attributes:
        path: The file.
        reason: Why it cannot be used.
    """

    code = "E60"
    template = "Trace database cannot be used: {path}: {reason}"
    path: str
    reason: str


class TraceNotFoundError(KantanAgentsError):
    """The database has no such trace, or more than one whose id begins so.

    Attributes:
        trace_id: What was asked for.
        path: The file.
        reason: What was found instead.
    """

    code = "E61"
    template = "No such trace: {trace_id} in {path}: {reason}"
    trace_id: str
    path: str
    reason: str


class TracesNotWrittenError(KantanAgentsError):
    """Spans cannot be written now; logged, never raised. The run goes on, the spans wait.

    Attributes:
        path: The file.
        reason: What SQLite or the system said.
        queued: How many spans wait.
    """

    code = "E62"
    template = "Traces cannot be written: {path}: {reason} ({queued} spans wait)"
    path: str
    reason: str
    queued: int


class SpansDroppedError(KantanAgentsError):
    """The queue of a recorder is full and loses its oldest spans; logged, never raised.

    Attributes:
        path: The file.
        limit: How much the queue holds.
    """

    code = "E63"
    template = "Oldest spans dropped, the queue is full: {path} (it holds {limit})"
    path: str
    limit: str


class RedactionError(KantanAgentsError):
    """A ``redact`` function failed, so a span is recorded without its content; logged, never raised.

    Attributes:
        span_id: Id of the span or the trace.
        reason: What the function raised or returned.
    """

    code = "E64"
    template = "Recorded without its content, redact failed: {span_id}: {reason}"
    span_id: str
    reason: str


class SpanNotRecordedError(KantanAgentsError):
    """One span cannot be recorded, all others can; logged, never raised.

    Attributes:
        span_id: Id of the span or the trace.
        reason: Why not.
    """

    code = "E65"
    template = "Span not recorded: {span_id}: {reason}"
    span_id: str
    reason: str
