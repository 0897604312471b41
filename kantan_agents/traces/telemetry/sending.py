"""Sends spans to the collector, and counts what becomes of them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import attrs

from kantan_agents.errors import SpansNotSentError
from kantan_agents.support.extras import extra
from kantan_agents.support.log import get_logger

with extra("otel"):
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

_log = get_logger("kantan_agents.telemetry")


@attrs.frozen
class OtelStats:
    """What has become of the spans of an ``OtelExporter`` that sends them itself.

    Attributes:
        sent: Number of spans that the collector has taken.
        failed: Number of spans that the collector has refused, or that did not reach it.
        dropped: Number of spans that were dropped because too many waited. Until the next flush, it may be a
            few too high.
        queued: Number of spans that wait.
    """

    sent: int = 0
    failed: int = 0
    dropped: int = 0
    queued: int = 0


class CountingExporter(SpanExporter):
    """Counts the spans that another exporter sends, and logs those that it cannot.

    Args:
        exporter: Sends the spans.

    Attributes:
        taken: Number of spans that it was given.
        sent: Number of spans that were sent.
        failed: Number of spans that were not.
        is_failing: Whether the last spans were not sent.
    """

    # The processor calls `export` in one thread at a time.
    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self.taken = self.sent = self.failed = 0
        self.is_failing = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans."""
        self.taken += len(spans)
        reason = "the collector did not take them"
        try:
            result = self._exporter.export(spans)
        except Exception as error:  # noqa: BLE001 - as the SDK would
            result, reason = SpanExportResult.FAILURE, f"{type(error).__name__}: {error}"
        if result is SpanExportResult.SUCCESS:
            self.sent += len(spans)
            self.is_failing = False
            return result
        self.failed += len(spans)
        if not self.is_failing:  # once for each time that it is away
            self.is_failing = True
            log_lost(self.failed, reason)
        return result

    def shutdown(self) -> None:
        """Send nothing more."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Return at once: nothing waits in here."""
        return self._exporter.force_flush(timeout_millis)


class CountingProcessor(BatchSpanProcessor):
    """The SDK's batch processor, which also counts what it drops.

    Args:
        exporter: Sends the batches.
        max_queue: Number of spans that may wait; the oldest are dropped after that.
        **options: As for the SDK's.
    """

    def __init__(self, exporter: CountingExporter, max_queue: int, **options: Any) -> None:
        super().__init__(exporter, max_queue_size=max_queue, **options)
        self._counting = exporter
        self._max_queue = max_queue
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._ended = 0
        self._dropped = 0

    def on_end(self, span: ReadableSpan) -> None:
        """Queue a span; the oldest one is dropped if the queue is full."""
        is_first = False
        if span.context is not None and span.context.trace_flags.sampled:
            with self._lock:
                self._ended += 1
                if self._ended - self._dropped - self._counting.taken > self._max_queue:
                    is_first = self._dropped == 0
                    self._dropped += 1
        super().on_end(span)
        if is_first:
            log_lost(1, f"more than {self._max_queue} wait (OTEL_BSP_MAX_QUEUE_SIZE)")

    def stats(self) -> OtelStats:
        """Return the numbers of spans."""
        counted = self._counting
        queued = max(0, self._ended - self._dropped - counted.taken)
        return OtelStats(sent=counted.sent, failed=counted.failed, dropped=self._dropped, queued=queued)

    def settle(self) -> None:
        """Correct the number of dropped spans, after everything that waited was given to the exporter."""
        with self._lock:
            self._dropped = min(self._dropped, max(0, self._ended - self._counting.taken))

    def start_anew(self) -> None:
        """Count from zero, in a forked child: the parent sends what waited."""
        self._reset()
        counted = self._counting
        counted.taken = counted.sent = counted.failed = 0


def log_lost(lost: int, reason: str) -> None:
    """Log that spans are lost."""
    error = SpansNotSentError(lost=lost, reason=reason)
    _log.warning(str(error), code=error.code, **error.data)
