"""E130 to E139: OpenTelemetry."""

from __future__ import annotations

from kantan_agents.errors.root import KantanAgentsError


class TelemetrySettingError(KantanAgentsError):
    """An ``OTEL_*`` variable names an exporter or a protocol that ``OtelExporter`` does not set up itself.

    Fix: Change the variable, or set up OpenTelemetry and pass ``tracer_provider``.

    Attributes:
        variable: The variable.
        value: Its value.
        reason: What it may be, or what to do.
    """

    code = "E131"
    template = "Cannot send to OpenTelemetry with {variable}={value}: {reason}"
    variable: str
    value: str
    reason: str


class SpansNotSentError(KantanAgentsError):
    """The collector is down or rejects spans; logged, never raised. The runs are not affected.

    Spans are lost if more than ``OTEL_BSP_MAX_QUEUE_SIZE`` wait, or if some still wait at the end of the
    process.

    Fix: Check the collector: ``reason`` has its answer. ``exporter.stats()`` has the numbers.

    Attributes:
        lost: Number of spans that are lost so far.
        reason: Why spans wait, or why the last ones are lost.
    """

    code = "E132"
    template = "Spans not sent to OpenTelemetry: {lost} lost so far: {reason}"
    lost: int
    reason: str


class SpanNotTranslatedError(KantanAgentsError):
    """A span has data that cannot be read; logged once for each reason, never raised.

    Fix: Correct the part that ``reason`` names, such as a ``__str__`` that raises.

    Attributes:
        reason: The reason.
    """

    code = "E133"
    template = "Span not sent to OpenTelemetry: {reason}"
    reason: str
