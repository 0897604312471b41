"""Reads from an error or an answer that a provider gets too many calls, and for how long it asks to wait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kantan_agents.errors import ProviderRequestError
from kantan_agents.middleware.limit_concurrency.used_up import until_refilled, until_reset
from kantan_agents.models.protocol.http.error_bodies import retry_after

LONGEST_PAUSE: Final = 60.0
"""Seconds. A provider that asks for more is asked again after this time."""

_STATUSES: Final = (429, 503, 529)


def is_overload(error: BaseException) -> bool:
    """Return whether a provider has refused a call because it gets too many."""
    status = error.status if isinstance(error, ProviderRequestError) else getattr(error, "status_code", None)
    # Nothing is too fast for an account without credit.
    return status in _STATUSES and getattr(error, "code", None) != "insufficient_quota"


def pause_after(error: BaseException) -> float:
    """Return for how many seconds no call is to begin after an overload; 0 if the provider does not say."""
    asked = error.retry_after if isinstance(error, ProviderRequestError) else None
    headers = getattr(getattr(error, "response", None), "headers", None)
    if asked is None and isinstance(headers, Mapping):
        asked = retry_after(headers)
        if asked is None:
            asked = until_reset(headers)
    return _bounded(asked)


def pause_of_answer(headers: Mapping[str, str]) -> float:
    """Return for how many seconds no call is to begin after an answer; 0 if no limit is used up by it."""
    return _bounded(until_refilled(headers))


def _bounded(seconds: float | None) -> float:
    return min(max(seconds or 0.0, 0.0), LONGEST_PAUSE)
