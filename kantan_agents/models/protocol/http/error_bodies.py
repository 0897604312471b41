"""Error responses of an HTTP API."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

_LONGEST = 500
# Rate limits that waiting does not resolve: OpenAI, Moonshot and one-api.
_USED_UP = {
    "insufficient_quota",
    "billing_not_active",
    "billing_hard_limit_reached",
    "exceeded_current_quota_error",
    "insufficient_user_quota",
}


def parse_error_body(body: bytes) -> tuple[str, Any]:
    """Return an error's message and object."""
    text = body.decode(errors="replace").strip()
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return text, None
    data = data[0] if isinstance(data, list) and data else data
    error = data.get("error") if isinstance(data, Mapping) else None
    message = error.get("message") if isinstance(error, Mapping) else None
    return message if isinstance(message, str) else text, error


def is_out_of_credit(error: BaseException) -> bool:
    """Return whether the account needs a payment."""
    codes = (getattr(error, name, None) for name in ("code", "type"))
    return any(isinstance(code, str) and code in _USED_UP for code in codes)


def shorten(text: str, longest: int = _LONGEST) -> str:
    """Cut a string to a maximum length."""
    return text if len(text) <= longest else f"{text[:longest]}..."


def retry_after(headers: Mapping[str, str], error: Any = None) -> float | None:
    """Return the seconds to wait before a retry, if stated."""
    milliseconds = _seconds(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    given = headers.get("retry-after", "")
    seconds = _seconds(given)
    if seconds is not None:
        return seconds
    try:
        return max(parsedate_to_datetime(given).timestamp() - time.time(), 0.0)
    except (TypeError, ValueError, IndexError, OverflowError):
        return _delay(error)


def _delay(error: Any) -> float | None:
    details = error.get("details") if isinstance(error, Mapping) else None
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, Mapping) else None
        if isinstance(delay, str) and delay.endswith("s"):
            return _seconds(delay[:-1])
    return None


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None
