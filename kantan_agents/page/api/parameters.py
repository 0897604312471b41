"""Query parameters; invalid ones are E75."""

from __future__ import annotations

import math
from datetime import datetime
from typing import NoReturn

from starlette.datastructures import QueryParams

from kantan_agents.errors import InvalidOptionError


def text_of(query: QueryParams, name: str) -> str | None:
    """None if missing or empty."""
    return query.get(name) or None


def flag_of(query: QueryParams, name: str) -> bool:
    """``1``, ``0`` or empty."""
    value = query.get(name, "")
    if value not in {"", "0", "1"}:
        _reject(name, f"must be 1 or 0, not {value!r}")
    return value == "1"


def count_of(query: QueryParams, name: str, default: int, most: int) -> int:
    """A number from 1 to ``most``."""
    value = query.get(name)
    if value is None:
        return default
    if not (value.isascii() and value.isdigit() and len(value) < 10 and 1 <= int(value) <= most):  # noqa: PLR2004
        _reject(name, f"must be a whole number from 1 to {most}, not {value!r}")
    return int(value)


def number_of(query: QueryParams, name: str) -> float | None:
    """A finite number, or None."""
    value = query.get(name)
    if not value:
        return None
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        _reject(name, f"must be a number, not {value!r}")
    return number


def time_of(query: QueryParams, name: str) -> datetime | None:
    """ISO 8601 with a time zone, or None."""
    value = query.get(name)
    if not value:
        return None
    try:
        time = datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError:
        _reject(name, f"must be a time such as 2026-05-01T12:00:00+00:00, not {value!r}")
    if time.tzinfo is None:
        _reject(name, f"must have a time zone, as in {value}+00:00")
    return time


def _reject(name: str, reason: str) -> NoReturn:
    raise InvalidOptionError(option=name, reason=reason)
