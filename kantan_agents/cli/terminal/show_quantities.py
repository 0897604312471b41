"""Formats times, durations, sizes and counts."""

from __future__ import annotations

from datetime import datetime, timezone

_MINUTE = 60
_HOUR = 3600
_KILO = 1000


def local_time(moment: datetime | None) -> str:
    """Return local time; "" for None."""
    if moment is None:
        return ""
    aware = _aware(moment)
    try:
        return aware.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return aware.isoformat()  # the first or last day of the calendar, from a damaged row


def short_time(moment: datetime | None) -> str:
    """Return a local time without the year, or the date."""
    day, _, time = local_time(moment).partition(" ")
    this_year = f"{datetime.now().astimezone().year:04}-"
    return f"{day.removeprefix(this_year)} {time[:5]}" if day.startswith(this_year) else day


def iso_time(moment: datetime | None) -> str | None:
    """Return a time as ISO 8601 in UTC."""
    return None if moment is None else _aware(moment).astimezone(timezone.utc).isoformat()


def duration_text(seconds: float | None) -> str:
    """Return a duration, as ``2 h 5 min``."""
    if seconds is None:
        return ""
    if round(seconds, 3) < 1:
        return f"{seconds * 1000:.0f} ms"
    if round(seconds, 1) < _MINUTE:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"


def size_text(size: float) -> str:
    """Return a size (powers of 1000)."""
    if size < _KILO:
        return f"{size:.0f} bytes"
    for unit in ("KB", "MB", "GB"):
        size /= _KILO
        if round(size, 1) < _KILO:
            return f"{size:.1f} {unit}"
    return f"{size / _KILO:.1f} TB"


def count_text(count: float) -> str:
    """Return a count with commas between thousands."""
    return f"{count:,.0f}"


def counted(count: int, thing: str) -> str:
    """Return a count with its noun."""
    return f"{count_text(count)} {thing}" if count == 1 else f"{count_text(count)} {thing}s"


def rate_text(part: int, whole: int) -> str:
    """Return a share in percent, or ""."""
    return f"{part / whole:.1%}" if whole else ""


def _aware(moment: datetime) -> datetime:
    # kantan-llm's times are naive and in UTC.
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
