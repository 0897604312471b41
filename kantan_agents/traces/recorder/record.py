"""``record_traces``: sets up recording with one call."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, TypedDict, cast

import kantan_llm.tracing
from agents import set_trace_processors
from agents.tracing import TracingProcessor
from typing_extensions import Unpack

from kantan_agents.errors import InvalidOptionError
from kantan_agents.traces import registry
from kantan_agents.traces.database_url import DEFAULT_PATH, is_url
from kantan_agents.traces.recorder.recorder import SQLiteRecorder
from kantan_agents.traces.recorder.redaction import Redact


class RecorderOptions(TypedDict, total=False):
    """The keyword arguments of ``SQLiteRecorder``; see there."""

    max_queue: int
    max_queue_bytes: int
    max_wait: float
    flush_interval: float
    redact: Redact | None
    flush_on_sigterm: bool
    adopt: bool
    record_requests: bool
    search_index: bool


def record_traces(
    path: str | os.PathLike[str] = DEFAULT_PATH,
    *,
    otel: bool | TracingProcessor = False,
    **options: Unpack[RecorderOptions],
) -> SQLiteRecorder:
    """Record all traces of the SDK and of kantan-llm in the database at ``path``, and nowhere else.

    This replaces all other trace processors, including the SDK's exporter, which sends traces to OpenAI. To
    retain them, pass a ``SQLiteRecorder`` to ``add_trace_processor`` instead.

    The recorder of an earlier call immediately writes its spans, stops its thread and closes its file. A call
    on an event loop does not wait for it.

    Args:
        path: The database file, as for ``SQLiteRecorder``; or the URL of a database in Postgres, as for
            ``PostgresRecorder``.
        otel: Whether to send the traces of the SDK to OpenTelemetry too, or the ``OtelExporter`` to use. With
            True, ``redact`` also applies to the sent data.
        **options: As for ``SQLiteRecorder``.

    Returns:
        The recorder.

    Raises:
        PostgresMissingError: E140, the path is a URL, and the Postgres driver is not installed.
        TraceDatabaseError: E60, the path is a directory, its directory does not exist, the file is the
            database of another program, or the default file is a symbolic link.
        InvalidOptionError: E75, an option is invalid.
        TelemetryMissingError: E130, OpenTelemetry is not installed.
        TelemetrySettingError: E131, an environment variable requests another exporter or protocol.
    """
    exporters = _exporters(otel, options.get("redact"))
    recorder = recorder_at(path, **options)
    replaced = registry.main_recorder()
    registry.register_main(recorder)
    processors: list[Any] = [recorder]  # Any: kantan-llm has its own interface of the same shape
    # The exporter first: it adds its trace id to the metadata that the recorder copies.
    set_trace_processors([*exporters, *processors])
    kantan_llm.tracing.set_trace_processors(processors)
    if replaced is not None:
        replaced.retire()
    return recorder


def _exporters(otel: Any, redact: Redact | None) -> list[TracingProcessor]:
    """Return the OpenTelemetry exporter, if any; raise E75 unless ``otel`` is a bool or a trace processor."""
    if isinstance(otel, TracingProcessor):
        return [otel]
    if not isinstance(otel, bool):
        reason = f"must be True, False or an OtelExporter, not {otel!r}"
        raise InvalidOptionError(option="otel", reason=reason)
    if not otel:
        return []
    # By its name: it is above this package, and many processes do not need it.
    made: TracingProcessor = import_module("kantan_agents.traces.telemetry").OtelExporter(redact=redact)
    return [made]


def recorder_at(path: str | os.PathLike[str], **options: Unpack[RecorderOptions]) -> SQLiteRecorder:
    """Return a recorder for a file or Postgres; it is not a trace processor yet."""
    if not is_url(path):
        return SQLiteRecorder(path, **options)
    # Imported late: few processes need it.
    from kantan_agents.traces.recorder.postgres_recorder import PostgresRecorder

    return PostgresRecorder(cast("str", path), **options)
