"""Sends spans to the collector, and counts the results."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from kantan_agents.errors import SpansNotSentError
from kantan_agents.support.extras import extra
from kantan_agents.support.log import get_logger

with extra("otel"):
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    from kantan_agents.traces.telemetry.connection import Connection

_log = get_logger("kantan_agents.telemetry")

PAUSE = 5.0

MOST_SENDS = 5
"""Tries for spans without an answer: the collector may have them already."""


@attrs.frozen
class OtelStats:
    """The numbers of spans of an ``OtelExporter`` that sends them itself.

    Attributes:
        sent: Number of spans that the collector accepted.
        failed: Number of spans that the collector rejected, or that could not be sent at all.
        dropped: Number of spans that were dropped because too many waited. Until the next flush, it may be a
            few too high.
        queued: Number of spans that wait, including for a collector that is down.
    """

    sent: int = 0
    failed: int = 0
    dropped: int = 0
    queued: int = 0


class CountingExporter(SpanExporter):
    """Sends spans until the collector accepts or rejects them, and counts them.

    It gives up spans that a collector received without an answer after ``MOST_SENDS``. The result of
    ``begin_try`` is called if the collector was down.
    """

    # The processor calls `export` in one thread at a time.
    def __init__(
        self, exporter: SpanExporter, connection: Connection, begin_try: Callable[[], Callable[[], None]]
    ) -> None:
        self._exporter = exporter
        self._connection = connection
        self._begin_try = begin_try
        self.start_anew()

    def start_anew(self) -> None:
        """Count from zero; also in a forked child."""
        self.taken = self.waiting = self.sent = self.failed = self.dropped = self.absences = 0
        self.is_failing = self._has_refused_some = False
        self._dropped_before = 0
        self._is_ending = False
        self._again = threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans until they are accepted or rejected."""
        self.taken += len(spans)
        self.waiting = len(spans)
        problem, sends = self._try(spans), 0
        while problem and self._connection.is_away and not self._is_ending:
            sends += self._connection.may_have_taken
            if sends >= MOST_SENDS:  # the others, too, might never get an answer
                break
            self._note_absence(problem)
            self._again.wait(PAUSE)
            self._again.clear()
            problem = self._try(spans)
        self.waiting = 0
        return self._give_up(len(spans), problem) if problem else self._count(len(spans))

    def try_now(self) -> None:
        """Try again without further waiting."""
        self._again.set()

    def end(self) -> None:
        """Try to send everything once more, without waiting."""
        self._is_ending = True
        self._again.set()

    def shutdown(self) -> None:
        """Send nothing more."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Return immediately: nothing waits in here."""
        return self._exporter.force_flush(timeout_millis)

    def _try(self, spans: Sequence[ReadableSpan]) -> str:
        self._connection.forget()
        self._was_away = self._begin_try()
        try:
            result = self._exporter.export(spans)
        except Exception as error:  # noqa: BLE001 - as the SDK would
            return f"{type(error).__name__}: {error}"
        return "" if result is SpanExportResult.SUCCESS else self._connection.problem

    def _note_absence(self, problem: str) -> None:
        if not self.is_failing:
            self.is_failing = True
            self.absences += 1
            self._dropped_before = self.dropped
            log_lost(self.failed + self.dropped, f"{problem}; they wait for it")
        self._was_away()

    def _count(self, count: int) -> SpanExportResult:
        refused, reason = self._connection.refused
        refused = min(max(refused, 0), count)
        self.sent += count - refused
        self.failed += refused
        if refused and not self._has_refused_some:
            self._has_refused_some = True
            log_lost(self.failed + self.dropped, f"the collector refuses a part: {reason}")
        if self.is_failing and self.dropped > self._dropped_before:
            dropped = self.dropped - self._dropped_before
            log_lost(self.failed + self.dropped, f"{dropped} were dropped while the collector was away")
        self.is_failing = False
        return SpanExportResult.SUCCESS

    def _give_up(self, count: int, problem: str) -> SpanExportResult:
        self.failed += count
        if not self.is_failing or self._is_ending or self._connection.is_away:
            log_lost(self.failed + self.dropped, problem)
        self.is_failing = True
        return SpanExportResult.FAILURE


class CountingProcessor(BatchSpanProcessor):
    """The SDK's batch processor, which also counts dropped spans."""

    def __init__(self, exporter: CountingExporter, max_queue: int, **options: Any) -> None:
        super().__init__(exporter, max_queue_size=max_queue, **options)
        self._counting = exporter
        self._max_queue = max_queue
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._ended = 0
        self._logged_absence = -1

    def on_end(self, span: ReadableSpan) -> None:
        """Queue a span; drop the oldest one if full."""
        counted, is_first = self._counting, False
        if span.context is not None and span.context.trace_flags.sampled:
            with self._lock:
                self._ended += 1
                if self._ended - counted.dropped - counted.taken > self._max_queue:
                    counted.dropped += 1
                    is_first = self._logged_absence != counted.absences
                    self._logged_absence = counted.absences
        super().on_end(span)
        if is_first:
            reason = f"more than {self._max_queue} wait (OTEL_BSP_MAX_QUEUE_SIZE)"
            log_lost(counted.failed + counted.dropped, reason)

    def shutdown(self) -> None:
        """Send the waiting spans; a collector that is down gets one more try."""
        self._counting.end()
        super().shutdown()  # type: ignore[no-untyped-call]

    def stats(self) -> OtelStats:
        """Return the numbers of spans."""
        counted = self._counting
        queued = max(0, self._ended - counted.dropped - counted.taken) + counted.waiting
        return OtelStats(sent=counted.sent, failed=counted.failed, dropped=counted.dropped, queued=queued)

    def settle(self) -> None:
        """Correct ``dropped``, after the exporter got all waiting spans."""
        counted = self._counting
        with self._lock:
            counted.dropped = min(counted.dropped, max(0, self._ended - counted.taken))

    def start_anew(self) -> None:
        """Count from zero, in a forked child."""
        self._reset()
        self._counting.start_anew()


def log_lost(lost: int, reason: str) -> None:
    """Log that spans are lost."""
    error = SpansNotSentError(lost=lost, reason=reason)
    _log.warning(str(error), code=error.code, **error.data)
