"""Reads overload and pauses from errors and answers."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any, Final, NamedTuple

from kantan_agents.errors import ProviderRequestError
from kantan_agents.models.protocol.http.error_bodies import is_out_of_credit, retry_after

LONGEST_PAUSE: Final = 60.0
"""Seconds; longer requested pauses are cut."""

_STATUSES: Final = (429, 503, 529)
_OPENAI: Final = ("requests", "tokens")
_ANTHROPIC: Final = ("requests", "tokens", "input-tokens", "output-tokens")
_PART = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h|d)")
_COUNT = re.compile("[1-9][0-9]{0,17}")
# For a limit on tokens, or on an unknown number of requests.
_SHARE_OF_A_CALL: Final = 0.1
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def is_overload(error: BaseException) -> bool:
    """Whether a provider rejected a call because of its rate."""
    status = error.status if isinstance(error, ProviderRequestError) else getattr(error, "status_code", None)
    # An account without credit is not a rate limit.
    return status in _STATUSES and not is_out_of_credit(error)


def pause_after(error: BaseException) -> float:
    """Seconds without calls after an overload; 0 if unknown."""
    asked = error.retry_after if isinstance(error, ProviderRequestError) else None
    headers = getattr(getattr(error, "response", None), "headers", None)
    if asked is None and isinstance(headers, Mapping):
        asked = retry_after(headers)
        if asked is None:
            asked = _until_reset(headers)
    return _bounded(asked)


def pause_of_answer(headers: Mapping[str, str]) -> float:
    """Seconds without calls after an answer; 0 if no limit is used up."""
    return _bounded(_until_refilled(headers))


def _bounded(seconds: float | None) -> float:
    return min(max(seconds or 0.0, 0.0), LONGEST_PAUSE)


def _until_reset(headers: Mapping[str, Any]) -> float | None:
    """Seconds until all used-up limits are reset.

    OpenAI sends a duration, Anthropic a time.
    """
    return max((limit.reset for limit in _used_up(headers)), default=None)


def _until_refilled(headers: Mapping[str, Any]) -> float | None:
    """Seconds until each used-up limit allows a call again.

    Limits refill continuously, and their reset time is when they are full. So one of N requests is back after
    1/N of the time. The tokens of the next call are unknown: it waits for a tenth of them.
    """
    return max((limit.reset * limit.share for limit in _used_up(headers)), default=None)


class _Limit(NamedTuple):
    """A used-up limit: seconds until it is full, and a call's share."""

    reset: float
    share: float


def _used_up(headers: Mapping[str, Any]) -> Iterator[_Limit]:
    for family, names, seconds_of in (
        ("x-ratelimit-{part}-{name}", _OPENAI, _duration),
        ("anthropic-ratelimit-{name}-{part}", _ANTHROPIC, _seconds_until),
    ):
        for name in names:
            remaining, reset, limit = (
                str(headers.get(family.format(name=name, part=part), ""))
                for part in ("remaining", "reset", "limit")
            )
            seconds = seconds_of(reset) if remaining == "0" else None
            if seconds is not None:
                is_count = name == "requests" and _COUNT.fullmatch(limit)
                yield _Limit(seconds, 1 / int(limit) if is_count else _SHARE_OF_A_CALL)


def _duration(text: str) -> float | None:
    """Parse ``1m30s`` or ``200ms`` into seconds."""
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def _seconds_until(text: str) -> float | None:
    """Parse an RFC 3339 time; 0 if it is past."""
    try:
        # Python 3.10 does not read the "Z".
        at = datetime.fromisoformat(text.replace("Z", "+00:00"))
        if at.tzinfo is None:
            at = at.replace(tzinfo=timezone.utc)
        return max(at.timestamp() - time.time(), 0.0)
    except (ValueError, OverflowError):
        return None
