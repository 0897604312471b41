"""Sends to a collector over OTLP, for applications without their own OpenTelemetry setup."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import MeterProvider as MeterProviderBase
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider

from kantan_agents.errors import TelemetrySettingError
from kantan_agents.traces.telemetry.connection import Connection
from kantan_agents.traces.telemetry.own_ids import OwnIds
from kantan_agents.traces.telemetry.sending import CountingExporter, CountingProcessor, OtelStats, log_lost

_QUEUE = "OTEL_BSP_MAX_QUEUE_SIZE"
_DEFAULT_QUEUE = 2_048
_HTTP = "http/protobuf"


class OwnPipeline:
    """The library's own providers, and the thread that flushes them."""

    def __init__(self, meter_provider: MeterProviderBase | None) -> None:
        # All settings first: the threads below would outlive an error.
        sends_traces = _sends("TRACES")
        sends_metrics = meter_provider is None and _sends("METRICS")
        queue_size = _queue_size() if sends_traces else 0
        self.ids = OwnIds()
        self._flusher = _Flusher(self._flush)
        self._connections: list[Connection] = []
        self._processor: CountingProcessor | None = None
        self._exporter: CountingExporter | None = None
        # Flushed by this library: by itself, it would wait for a collector that is down.
        self.tracer_provider = TracerProvider(id_generator=self.ids, shutdown_on_exit=False)
        if sends_traces:
            connection = self._connection()
            sending = OTLPSpanExporter(session=connection)
            self._exporter = CountingExporter(sending, connection, self._flusher.begin_try)
            self._processor = CountingProcessor(self._exporter, queue_size)
            self.tracer_provider.add_span_processor(self._processor)
        self._own_meters: MeterProvider | None = None
        if sends_metrics:
            reader = PeriodicExportingMetricReader(OTLPMetricExporter(session=self._connection()))
            self._own_meters = MeterProvider([reader], shutdown_on_exit=False)
        self.meter_provider: MeterProviderBase = meter_provider or self._own_meters or NoOpMeterProvider()
        self.before_flush: Callable[[], None] = lambda: None

    @property
    def is_failing(self) -> bool:
        """Whether the collector did not accept the last spans."""
        return self._exporter is not None and self._exporter.is_failing

    def stats(self) -> OtelStats:
        """Return the numbers of spans."""
        return OtelStats() if self._processor is None else self._processor.stats()

    def start_flush(self) -> Callable[[float], bool]:
        """Start to send; return a function that waits."""
        wait = self._flusher.begin()
        if self._exporter is not None:
            self._exporter.try_now()
        return wait

    def log_unwritten(self) -> None:
        """Log the spans that will be lost."""
        stats = self.stats()
        if stats.queued:
            lost = stats.queued + stats.failed + stats.dropped
            log_lost(lost, f"{stats.queued} still wait at the end of the process")

    def after_fork_in_child(self) -> None:
        """Start empty, with new connections."""
        for connection in self._connections:
            connection.connect_anew()
        if self._processor is not None:
            self._processor.start_anew()
        self._flusher.renew()

    def retire(self, then: Callable[[], None]) -> None:
        """Send waiting spans, call ``then``, and stop all threads, without waiting."""
        if self._exporter is not None:
            self._exporter.end()
        self._flusher.end_with(lambda: self._end(then))

    def _end(self, then: Callable[[], None]) -> None:
        then()
        self.tracer_provider.shutdown()
        if self._own_meters is not None:
            self._own_meters.shutdown()

    def _connection(self) -> Connection:
        connection = Connection()
        self._connections.append(connection)
        return connection

    def _flush(self) -> None:
        self.before_flush()
        self.tracer_provider.force_flush()
        if self._processor is not None:
            self._processor.settle()
        # A collector that just failed would delay the metrics in vain.
        if self._own_meters is not None and not self.is_failing:
            self._own_meters.force_flush()


def _sends(signal: str) -> bool:
    variable = f"OTEL_{signal}_EXPORTER"
    chosen = os.environ.get(variable, "").strip().lower() or "otlp"
    if chosen == "none":
        return False
    if chosen != "otlp":
        reason = 'it must be "otlp" or "none"; for others, set up OpenTelemetry and pass tracer_provider'
        raise TelemetrySettingError(variable=variable, value=chosen, reason=reason)
    for variable in (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        protocol = os.environ.get(variable, "").strip()
        if protocol and protocol != _HTTP:
            reason = f'it must be "{_HTTP}"; for others, set up OpenTelemetry and pass tracer_provider'
            raise TelemetrySettingError(variable=variable, value=protocol, reason=reason)
        if protocol:
            break
    return True


def _queue_size() -> int:
    value = os.environ.get(_QUEUE, "").strip()
    if not value:
        return _DEFAULT_QUEUE
    if not value.isascii() or not value.isdigit() or int(value) == 0:
        raise TelemetrySettingError(variable=_QUEUE, value=value, reason="it must be a number above 0")
    return int(value)


class _Flusher:
    """Lets others wait for ``flush`` for a limited time: the SDK's ignores its timeout.

    The thread starts with the exporter, because none can start at the end of an interpreter.
    """

    def __init__(self, flush: Callable[[], object]) -> None:
        self._flush = flush
        self._last: Callable[[], object] | None = None
        self.renew()

    def renew(self) -> None:
        """Start the thread; also in a forked child."""
        self._asked = 0
        self._done = 0
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="kantan-agents-otel", daemon=True)
        self._thread.start()

    def begin(self) -> Callable[[float], bool]:
        with self._changed:
            self._asked += 1
            wanted = self._asked
            self._changed.notify_all()

        def wait(seconds: float) -> bool:
            with self._changed:
                return self._changed.wait_for(lambda: self._done >= wanted, max(0.0, seconds))

        return wait

    def begin_try(self) -> Callable[[], None]:
        """Return a function that ends the earlier waits: the collector is down."""
        asked = self._asked

        def release() -> None:
            with self._changed:
                self._done = max(self._done, asked)
                self._changed.notify_all()

        return release

    def end_with(self, last: Callable[[], object]) -> None:
        self._last = last
        self.begin()

    def _work(self) -> None:
        changed = self._changed
        while self._last is None or self._asked > self._done:
            with changed:
                # A failed try may have come between the last request and this.
                changed.wait_for(lambda: self._asked > self._done or self._last is not None)
                wanted = self._asked
            try:
                self._flush()
            finally:
                with changed:
                    self._done = max(self._done, wanted)
                    changed.notify_all()
        self._last()
