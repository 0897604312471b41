"""E60 to E69, E87 and E99: traces and recorded runs."""

from __future__ import annotations

from kantan_agents.errors.root import KantanAgentsError


class TraceDatabaseError(KantanAgentsError):
    """A trace database cannot be opened, read or changed, or is the database of another program.

    Fix: To record in the database of another program, pass ``adopt=True``.

    Attributes:
        path: The file.
        reason: The reason.
    """

    code = "E60"
    is_bad_input = True
    template = "Trace database cannot be used: {path}: {reason}"
    path: str
    reason: str


class TraceNotFoundError(KantanAgentsError):
    """The database has no trace with this id, or several whose ids start or end with it.

    Fix: ``kantan-agents traces list`` shows the latest ids.

    Attributes:
        trace_id: The requested id.
        path: The file.
        reason: What the database has instead.
    """

    code = "E61"
    is_bad_input = True
    template = "No such trace: {trace_id} in {path}: {reason}"
    trace_id: str
    path: str
    reason: str


class TracesNotWrittenError(KantanAgentsError):
    """Spans cannot be written at the moment; logged, never raised. The run continues, the spans wait.

    If the process exits, the waiting spans are lost; ``reason`` then states it.

    Fix: Correct the part that ``reason`` names, such as a full disk. The recorder retries by itself.

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

    Fix: If E62 was logged before, fix that first. Otherwise raise ``max_queue``, ``max_queue_bytes`` or
    ``max_wait``.

    Attributes:
        path: The file.
        limit: The capacity of the queue.
    """

    code = "E63"
    template = "Oldest spans dropped, the queue is full: {path} (it holds {limit})"
    path: str
    limit: str


class RedactionError(KantanAgentsError):
    """A ``redact`` function raised or did not return a dict; its span is recorded without content.

    Logged, never raised.

    Fix: Correct the function.

    Attributes:
        span_id: Id of the span or the trace.
        reason: The error or result of the function.
    """

    code = "E64"
    template = "redact failed, span recorded without its content: {span_id}: {reason}"
    span_id: str
    reason: str


class SpanNotRecordedError(KantanAgentsError):
    """SQLite rejected a single span, for example one larger than a gigabyte; logged, never raised.

    Fix: Limit the length of strings with ``KANTAN_LLM_TRACING_MAX_CHARS``.

    Attributes:
        span_id: Id of the span or the trace.
        reason: The reason.
    """

    code = "E65"
    template = "Span not recorded: {span_id}: {reason}"
    span_id: str
    reason: str


class RecorderReplacedError(KantanAgentsError):
    """Other trace processors have replaced the recorder of ``record_traces``; logged once, never raised.

    Fix: See the message. If you want the replacement, call ``recorder.shutdown()``.

    Attributes:
        path: The file that no longer receives traces.
    """

    code = "E66"
    template = (
        "Traces are no longer recorded: {path}: set_trace_processors or an instrumentation has replaced the "
        "recorder. Call record_traces last, or add a SQLiteRecorder with add_trace_processor"
    )
    path: str


class NoRecordedCallsError(KantanAgentsError):
    """``what_if`` found no recorded tool call about which the rules can decide.

    Fix: Choose other runs; ``reason`` describes the chosen ones. Runs with ``record_requests=False`` have no
    record.

    Attributes:
        reason: What they hold instead.
    """

    code = "E99"
    is_bad_input = True
    template = "No recorded tool call: {reason}"
    reason: str


class PromptNotRecordedError(KantanAgentsError):
    """No recorded run in the database has used a prompt of this id, or of this name and version.

    Fix: ``store.prompts()`` lists the versions with their recorded prompts.

    Attributes:
        prompt: The id, or the name and version.
        path: The file.
    """

    code = "E87"
    is_bad_input = True
    template = (
        "No recorded run has used the prompt {prompt}: {path}: runs that were recorded by an earlier "
        "version, or with record_requests=False, have no texts of prompts"
    )
    prompt: str
    path: str
