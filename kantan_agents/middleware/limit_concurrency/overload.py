"""Reads from an error that a provider is overloaded, and for how long it asks clients to wait."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from kantan_agents.errors import ProviderRequestError
from kantan_agents.protocol.http.error_bodies import retry_after

LONGEST_PAUSE: Final = 60.0
"""Seconds. A provider that asks for more is asked again after this time."""

_STATUSES: Final = (429, 503, 529)
_LIMITS: Final = ("requests", "tokens")
_PART = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h|d)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


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
            asked = _until_reset(headers)
    return min(max(asked or 0.0, 0.0), LONGEST_PAUSE)


def _until_reset(headers: Mapping[str, Any]) -> float | None:
    """Return the seconds until the used-up limits of OpenAI's headers are reset."""
    used_up = [name for name in _LIMITS if headers.get(f"x-ratelimit-remaining-{name}") == "0"]
    found = [_seconds(str(headers.get(f"x-ratelimit-reset-{name}", ""))) for name in used_up]
    return max((one for one in found if one is not None), default=None)


def _seconds(text: str) -> float | None:
    """Return a duration such as ``1m30s`` or ``200ms`` in seconds; None if it is not one."""
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)
