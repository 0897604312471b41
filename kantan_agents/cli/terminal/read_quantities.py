"""Parses durations, sizes and times."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from fractions import Fraction

from kantan_agents.errors import InvalidOptionError

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_BYTES = {
    "B": 1,
    "KB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "TB": 1000**4,
    "KIB": 1024,
    "MIB": 1024**2,
    "GIB": 1024**3,
    "TIB": 1024**4,
}
_AMOUNT = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>[A-Za-z]*)", re.ASCII)
_DURATIONS = "a number with s, m, h, d or w, such as 90s, 12h or 30d"
_SIZES = "a number with KB, MB, GB, KiB, MiB or GiB, such as 500MB or 2GiB"
_MOMENTS = "a duration such as 2h or 30d, or a time such as 2026-11-20 or 2026-11-20T09:30"


def read_duration(text: str, option: str) -> timedelta:
    """Return a duration, as ``30d``; also m, h, s and w."""
    duration = _duration(text.strip())
    if duration is None:
        raise InvalidOptionError(option=option, reason=f"must be {_DURATIONS}, not {text!r}")
    return duration


def read_size(text: str, option: str) -> int:
    """Return a size in bytes; KB, MB, GB are powers of 1000, KiB, MiB, GiB of 1024."""
    amount = _AMOUNT.fullmatch(text.strip())
    factor = _BYTES.get(amount["unit"].upper()) if amount else None
    size = 0
    if amount is not None and factor is not None:
        with suppress(ValueError):  # more digits than Python converts
            size = round(Fraction(amount["number"]) * factor)
    if size < 1:
        raise InvalidOptionError(option=option, reason=f"must be {_SIZES}, not {text!r}")
    return size


def read_moment(text: str, option: str) -> datetime:
    """Return a UTC time: a duration before now (``2h``, ``30d ago``) or an ISO time.

    A time without an offset is local; a date means its midnight.
    """
    written = text.strip()
    try:
        before = _duration(re.sub(r"\s+ago$", "", written))
        if before is not None:
            return datetime.now(timezone.utc) - before
        # Python 3.10 does not support the Z.
        return datetime.fromisoformat(re.sub("[Zz]$", "+00:00", written)).astimezone(timezone.utc)
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidOptionError(option=option, reason=f"must be {_MOMENTS}, not {text!r}") from error


def _duration(text: str) -> timedelta | None:
    amount = _AMOUNT.fullmatch(text)
    seconds = _SECONDS.get(amount["unit"].lower()) if amount else None
    if amount is None or seconds is None:
        return None
    try:
        return timedelta(seconds=float(amount["number"]) * seconds)
    except OverflowError:
        return None
