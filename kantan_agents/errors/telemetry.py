"""E130 to E139: OpenTelemetry."""

from __future__ import annotations

from kantan_agents.errors.root import KantanAgentsError


class TelemetrySettingError(KantanAgentsError):
    """An environment variable asks for a way of sending that this library does not set up itself.

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
    """Spans were not sent to the collector; logged, never raised. The runs are not affected.

    Attributes:
        lost: Number of spans that are lost so far.
        reason: What has just begun: why they wait, or why the last ones are lost.
    """

    code = "E132"
    template = "Spans not sent to OpenTelemetry: {lost} lost so far: {reason}"
    lost: int
    reason: str


class SpanNotTranslatedError(KantanAgentsError):
    """A span of the SDK could not become one of OpenTelemetry; logged once for each reason, never raised.

    Attributes:
        reason: The reason.
    """

    code = "E133"
    template = "Span not sent to OpenTelemetry: {reason}"
    reason: str
