"""Checks the names of stored labels."""

from __future__ import annotations

from typing import Any

from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.arguments import checked_text, shown


def checked_metric(value: Any, option: str = "metric") -> str:
    """Return the name of a metric; it does not start with a space."""
    metric = checked_name(option, value)
    if metric.startswith(" "):
        raise InvalidOptionError(option=option, reason=f"must not begin with a space: {shown(metric)}")
    return metric


def checked_name(option: str, value: Any) -> str:
    """Return a name that can be stored."""
    name = checked_text(option, value)
    if not name.strip():
        raise InvalidOptionError(option=option, reason="must not be empty")
    check_unicode(option, name)
    return name


def check_unicode(option: str, value: str | None) -> None:
    """Raise E75 for half of a surrogate pair, which no database can store."""
    try:
        (value or "").encode()
    except UnicodeEncodeError as error:
        raise InvalidOptionError(option=option, reason=f"is not valid Unicode: {shown(value)}") from error
