"""Numbers that users give, checked at the boundary."""

from __future__ import annotations

import sys
from typing import Any

from kantan_agents.errors import InvalidOptionError


def checked_int(option: str, value: Any, least: int, most: int | None = None) -> int:
    """Return ``value``, an int from ``least`` to ``most``.

    Raises:
        InvalidOptionError: E75, it is none.
    """
    is_int = isinstance(value, int) and not isinstance(value, bool)
    if is_int and least <= value <= (value if most is None else most):
        return int(value)
    wanted = f"{least} or more" if most is None else f"{least} to {most}"
    raise InvalidOptionError(option=option, reason=f"must be an int, {wanted}, not {value!r}")


def checked_number(option: str, value: Any, *, above_zero: bool = False) -> float:
    """Return ``value``, a finite number from 0 on, as a float.

    Args:
        option: What it is called.
        value: What was given.
        above_zero: Whether 0 itself is none.

    Raises:
        InvalidOptionError: E75, it is none.
    """
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if is_number and 0 <= value <= sys.float_info.max and (value > 0 or not above_zero):
        return float(value)
    wanted = "greater than 0" if above_zero else "0 or more"
    raise InvalidOptionError(option=option, reason=f"must be a number, {wanted}, not {value!r}")
