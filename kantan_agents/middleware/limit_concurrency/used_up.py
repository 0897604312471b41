"""Reads from the headers of a provider when a limit that is used up is reset."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, Final

_OPENAI: Final = ("requests", "tokens")
_ANTHROPIC: Final = ("requests", "tokens", "input-tokens", "output-tokens")
_PART = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h|d)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def until_reset(headers: Mapping[str, Any]) -> float | None:
    """Return the seconds until all limits that are used up are reset; None if no limit is.

    Understands OpenAI's ``x-ratelimit-*`` (a duration) and Anthropic's ``anthropic-ratelimit-*`` (a time).
    """
    found = [
        _duration(str(headers.get(f"x-ratelimit-reset-{name}", "")))
        for name in _OPENAI
        if headers.get(f"x-ratelimit-remaining-{name}") == "0"
    ]
    found += [
        _seconds_until(str(headers.get(f"anthropic-ratelimit-{name}-reset", "")))
        for name in _ANTHROPIC
        if headers.get(f"anthropic-ratelimit-{name}-remaining") == "0"
    ]
    return max((one for one in found if one is not None), default=None)


def _duration(text: str) -> float | None:
    """Return a duration such as ``1m30s`` or ``200ms`` in seconds; None if it is not one."""
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def _seconds_until(text: str) -> float | None:
    """Return the seconds until an RFC 3339 time, 0 if it is past; None if it is not such a time."""
    try:
        # Python 3.10 does not read the "Z".
        at = datetime.fromisoformat(text.replace("Z", "+00:00"))
        if at.tzinfo is None:
            at = at.replace(tzinfo=timezone.utc)
        return max(at.timestamp() - time.time(), 0.0)
    except (ValueError, OverflowError):
        return None
