"""``OtelExporter``: a trace processor that sends runs to OpenTelemetry."""

from __future__ import annotations

import atexit
import os
import weakref
from collections.abc import Callable
from typing import Any

import anyio.to_thread
from agents.tracing import TracingProcessor

from kantan_agents.core.interception import tool_call_notes
from kantan_agents.errors import InvalidOptionError, KantanAgentsError, SpanNotTranslatedError
from kantan_agents.support.arguments import checked_bool
from kantan_agents.support.extras import extra
from kantan_agents.support.log import get_logger
from kantan_agents.traces import registry
from kantan_agents.traces.recorder import lifecycle, sigterm
from kantan_agents.traces.recorder.redaction import Redact
from kantan_agents.traces.telemetry import conventions as names

with extra("otel"):
    from opentelemetry import metrics, trace
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from kantan_agents.traces.telemetry.ends import Ends
    from kantan_agents.traces.telemetry.later import Later
    from kantan_agents.traces.telemetry.measurements import Measurements
    from kantan_agents.traces.telemetry.own_pipeline import OwnPipeline
    from kantan_agents.traces.telemetry.sending import OtelStats
    from kantan_agents.traces.telemetry.span_reader import SpanReader
    from kantan_agents.traces.telemetry.spans import Spans

_log = get_logger("kantan_agents.telemetry")

FLUSH_SECONDS = 5.0
_SCOPE = "kantan_agents"
_MAX_LOGGED = 100


class OtelExporter(TracingProcessor):
    """Sends runs to OpenTelemetry: agents, calls of models and tools, denials, approvals and scores.

    Pass it to ``record_traces(otel=...)``, or to ``add_trace_processor`` without a trace database. Names and
    attributes follow the conventions for generative AI, version 0.1.0 (status "Development").

    A run inside an application span, such as a FastAPI request, is a child of that span. Spans that a tool's
    code starts are children of the tool's span.

    If the application has already set up OpenTelemetry, its providers are used. Otherwise spans and metrics
    go over OTLP (HTTP) to the destination in the ``OTEL_*`` environment variables, by default
    ``localhost:4318``. A collector that is down never delays or fails a run. Spans wait for it until the
    queue is full; lost spans are logged (E132) and counted in ``stats()``.

    Args:
        tracer_provider: Creates the spans. By default the application's global one.
        meter_provider: Creates the metrics. By default the application's global one.
        content: Whether to send the content of users, models and tools: inputs, answers, arguments, results,
            and error messages. The default is the value of
            ``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT``, and False without it. Secrets are masked.
            Runs with ``trace_include_sensitive_data=False`` never send any.
        redact: As for ``SQLiteRecorder``: receives each span and trace, and returns the data to send, or None
            to send no content. The conversation is the ``group_id`` of a trace.
        flush_on_sigterm: As for ``SQLiteRecorder``; has no effect with the application's own providers.
        user_key: The key in a run's metadata, such as ``"user_id"``, to send as ``user.id``, by which
            backends group traces. By default none is sent.

    Raises:
        TelemetryMissingError: E130, ``opentelemetry-sdk`` or its OTLP exporter is not installed.
        TelemetrySettingError: E131, an environment variable requests another exporter or protocol.
        InvalidOptionError: E75, an option is invalid.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        content: bool | None = None,
        redact: Redact | None = None,
        flush_on_sigterm: bool = True,
        user_key: str | None = None,
    ) -> None:
        _check_provider("tracer_provider", tracer_provider, "get_tracer")
        _check_provider("meter_provider", meter_provider, "get_meter")
        if redact is not None and not callable(redact):
            raise InvalidOptionError(option="redact", reason="must be a function")
        if user_key is not None and not (isinstance(user_key, str) and user_key):
            raise InvalidOptionError(option="user_key", reason="must be a key of the runs' metadata")
        self._content = _content_of_environment() if content is None else checked_bool("content", content)
        is_flushed = checked_bool("flush_on_sigterm", flush_on_sigterm)
        tracers = tracer_provider or _set_up(trace.get_tracer_provider())
        meters = meter_provider or _set_up(metrics.get_meter_provider())
        self._own: OwnPipeline | None = None
        if tracers is None:
            self._own = OwnPipeline(meters)
            tracers, meters = self._own.tracer_provider, self._own.meter_provider
        self._tracers: Any = tracers
        self._meters: Any = meters or metrics.NoOpMeterProvider()
        version = _version()
        self._sent_when_silent: int | None = None
        log = _Problems()
        self._later = Later(log.untranslated)
        self._spans = Spans(
            self._tracers.get_tracer(_SCOPE, version, schema_url=names.SCHEMA_URL),
            Ends(Measurements(self._meters.get_meter(_SCOPE, version, schema_url=names.SCHEMA_URL))),
            SpanReader(content=self._content, redact=redact, report=lambda error: log(error, error.reason)),
            self._later,
            None if self._own is None else self._own.ids,
            user_key,
        )
        self._log = log
        if self._own is not None:
            self._own.before_flush = self._later.do_now
        tool_call_notes.append(_noting(self))
        self._ending = weakref.finalize(self, _end, self._later, self._own)
        self._ending.atexit = False
        registry.register_exporter(self)
        lifecycle.watch_process()
        # Registered after the application's hooks, so that it runs first and they send its spans.
        atexit.register(_do_waiting, weakref.ref(self._later))
        if is_flushed and self._own is not None:
            sigterm.flush_on_sigterm()

    def __repr__(self) -> str:
        sends = "its own pipeline" if self._own is not None else type(self._tracers).__name__
        return f"OtelExporter({sends}, content={self._content})"

    @property
    def tracer_provider(self) -> TracerProvider:
        """The provider in use; pass it to ``opentelemetry.trace.set_tracer_provider`` to share it."""
        return self._tracers  # type: ignore[no-any-return]

    @property
    def meter_provider(self) -> MeterProvider:
        """The provider of metrics in use."""
        return self._meters  # type: ignore[no-any-return]

    @property
    def content(self) -> bool:
        """Whether the content of users, models and tools is sent."""
        return self._content

    def on_trace_start(self, trace: Any) -> None:
        """Start the span of a trace."""
        lifecycle.watch_worker()
        self._try(self._spans.trace_started, trace)

    def on_trace_end(self, trace: Any) -> None:
        """End the span of a trace; after a SIGTERM, send it immediately."""
        self._try(self._spans.trace_ended, trace)
        if self._own is not None and sigterm.is_shutting_down():
            self._own.start_flush()

    def on_span_start(self, span: Any) -> None:
        """Start a span."""
        self._try(self._spans.span_started, span)

    def on_span_end(self, span: Any) -> None:
        """End a span."""
        self._try(self._spans.span_ended, span)

    def stats(self) -> OtelStats:
        """Return the numbers of spans; zeros if the application's own provider sends them."""
        return OtelStats() if self._own is None else self._own.stats()

    def force_flush(self, timeout: float = FLUSH_SECONDS) -> bool:  # type: ignore[override]
        """Send everything that has ended so far; ``agents.flush_traces()`` calls it too.

        Args:
            timeout: Maximum wait in seconds. An application's own provider may wait longer.

        Returns:
            Whether everything was passed to the collector in time; ``stats()`` counts what it accepted.
        """
        if self._own is not None:
            return self._own.start_flush()(timeout) and not self._own.is_failing
        self._later.do_now()
        flushed = [_flush(provider, timeout) for provider in (self._tracers, self._meters)]
        return all(flushed)

    async def force_flush_async(
        self,
        timeout: float = FLUSH_SECONDS,  # noqa: ASYNC109 - the same signature as force_flush
    ) -> bool:
        """Do the same as ``force_flush`` without blocking the event loop."""
        return await anyio.to_thread.run_sync(self.force_flush, timeout, abandon_on_cancel=True)

    def start_flush(self) -> Callable[[float], bool]:
        """Start ``force_flush``; return a function that waits for it, at most the given seconds.

        It does not wait for a collector that is down.
        """
        if self._own is None:
            self._later.do_now()
            return lambda _: True
        wait = self._own.start_flush()
        # A process may end in several steps, each of which would wait in vain.
        if self._own.is_failing or self._sent_when_silent == self._own.stats().sent:
            return lambda _: True
        return lambda seconds: self._waited(is_done=wait(seconds))

    def _waited(self, *, is_done: bool) -> bool:
        self._sent_when_silent = None if is_done else self.stats().sent
        return is_done

    def shutdown(self, timeout: float = FLUSH_SECONDS) -> None:
        """Send all waiting spans. A span that ends later is sent too.

        Args:
            timeout: Maximum wait in seconds; 0 if the collector is down.
        """
        self.start_flush()(timeout)

    def log_unwritten(self) -> None:
        """Log the spans that will be lost when the process exits."""
        if self._own is not None:
            self._own.log_unwritten()

    def after_fork_in_child(self) -> None:
        """Start empty; the parent sends the waiting spans."""
        self._later.start_anew()
        if self._own is not None:
            self._own.after_fork_in_child()

    def _try(self, step: Callable[[Any], None], subject: Any) -> None:
        try:
            step(subject)
        except Exception as error:  # noqa: BLE001 - telemetry must not fail a run
            self._log.untranslated(error)


def _end(later: Later, own: OwnPipeline | None) -> None:
    if own is not None:
        own.retire(later.end)
    else:
        later.end()


def _do_waiting(known: weakref.ref[Later]) -> None:
    later = known()
    if later is not None:
        later.do_now()


def _noting(exporter: OtelExporter) -> Callable[[str], None]:
    """Return a function for ``tool_call_notes`` that removes itself with the exporter."""

    def forget(_: object) -> None:
        if note in tool_call_notes:
            tool_call_notes.remove(note)

    known = weakref.ref(exporter, forget)

    def note(call_id: str) -> None:
        found = known()
        if found is not None:
            found._try(found._spans.note_tool_call, call_id)

    return note


def _check_provider(option: str, provider: Any, method: str) -> None:
    if provider is not None and not callable(getattr(provider, method, None)):
        reason = f"must be a provider of OpenTelemetry, not {type(provider).__name__}"
        raise InvalidOptionError(option=option, reason=reason)


def _set_up(provider: Any) -> Any:
    """Return a global provider that the application set; None for the placeholders of the API."""
    return (
        None
        if type(provider).__module__.startswith(("opentelemetry.trace", "opentelemetry.metrics"))
        else provider
    )


def _content_of_environment() -> bool:
    value = os.environ.get(names.CONTENT_VARIABLE, "").strip().lower()
    if value not in names.CONTENT_ON | names.CONTENT_OFF:
        _log.warning(f"{names.CONTENT_VARIABLE} is unknown, so no content is sent", value=value)
    return value in names.CONTENT_ON


def _flush(provider: Any, timeout: float) -> bool:
    flush = getattr(provider, "force_flush", None)
    return True if flush is None else flush(int(timeout * 1_000)) is not False


def _version() -> str:
    from importlib.metadata import version

    return version("kantan-agents")


class _Problems:
    def __init__(self) -> None:
        self._logged: set[tuple[str, str]] = set()

    def __call__(self, error: KantanAgentsError, reason: str) -> None:
        known = (error.code, reason)
        if known not in self._logged and len(self._logged) < _MAX_LOGGED:
            self._logged.add(known)
            _log.error(str(error), code=error.code, **error.data)

    def untranslated(self, error: Exception) -> None:
        reason = f"{type(error).__name__}: {error}"
        self(SpanNotTranslatedError(reason=reason), reason)
