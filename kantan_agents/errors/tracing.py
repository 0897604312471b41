"""E60 to E69: tracing."""

from __future__ import annotations

from kantan_agents.errors.root import KantanAgentsError


class TraceDatabaseError(KantanAgentsError):
    """A trace database cannot be opened, read or changed.

    Attributes:
        path: The file.
        reason: The reason.
    """

    code = "E60"
    template = "Trace database cannot be used: {path}: {reason}"
    path: str
    reason: str


class TraceNotFoundError(KantanAgentsError):
    """The database has no such trace, or several whose ids begin with the given text.

    Attributes:
        trace_id: The requested id.
        path: The file.
        reason: What the database has instead.
    """

    code = "E61"
    template = "No such trace: {trace_id} in {path}: {reason}"
    trace_id: str
    path: str
    reason: str


class TracesNotWrittenError(KantanAgentsError):
    """Spans cannot be written at the moment; logged, never raised. The run continues, the spans wait.

    Attributes:
        path: The file.
        reason: The error of SQLite or the system.
        queued: Number of queued spans.
    """

    code = "E62"
    template = "Traces cannot be written: {path}: {reason} ({queued} spans waiting)"
    path: str
    reason: str
    queued: int


class SpansDroppedError(KantanAgentsError):
    """The queue of a recorder is full and its oldest spans are dropped; logged, never raised.

    Attributes:
        path: The file.
        limit: The capacity of the queue.
    """

    code = "E63"
    template = "Oldest spans dropped, the queue is full: {path} (it holds {limit})"
    path: str
    limit: str


class RedactionError(KantanAgentsError):
    """A ``redact`` function failed and its span was recorded without content; logged, never raised.

    Attributes:
        span_id: Id of the span or the trace.
        reason: The error or result of the function.
    """

    code = "E64"
    template = "redact failed, span recorded without its content: {span_id}: {reason}"
    span_id: str
    reason: str


class SpanNotRecordedError(KantanAgentsError):
    """A single span cannot be recorded; logged, never raised.

    Attributes:
        span_id: Id of the span or the trace.
        reason: The reason.
    """

    code = "E65"
    template = "Span not recorded: {span_id}: {reason}"
    span_id: str
    reason: str
