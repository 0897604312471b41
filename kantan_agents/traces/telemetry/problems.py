"""Logs what went wrong between the SDK's spans and those of OpenTelemetry, each thing once."""

from __future__ import annotations

from kantan_agents.errors import KantanAgentsError, SpanNotTranslatedError
from kantan_agents.support.log import get_logger

_log = get_logger("kantan_agents.telemetry")
_MAX_LOGGED = 100


class Problems:
    """Logs each error once."""

    def __init__(self) -> None:
        self._logged: set[tuple[str, str]] = set()

    def __call__(self, error: KantanAgentsError, reason: str) -> None:
        """Log an error."""
        known = (error.code, reason)
        if known not in self._logged and len(self._logged) < _MAX_LOGGED:
            self._logged.add(known)
            _log.error(str(error), code=error.code, **error.data)

    def untranslated(self, error: Exception) -> None:
        """Log that a span could not become one of OpenTelemetry."""
        reason = f"{type(error).__name__}: {error}"
        self(SpanNotTranslatedError(reason=reason), reason)
