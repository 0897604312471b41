"""Checks public arguments."""

from __future__ import annotations

import os
import reprlib
import sys
from collections.abc import Iterable
from typing import Any, Final

from kantan_agents.errors import InvalidOptionError

_HUGE: Final = 1e300  # so that the difference of two numbers is finite as well


def checked_int(option: str, value: Any, least: int, most: int | None = None) -> int:
    """E75 unless it is an int from ``least`` to ``most``."""
    is_int = isinstance(value, int) and not isinstance(value, bool)
    if is_int and least <= value <= (value if most is None else most):
        return int(value)
    wanted = f"{least} or more" if most is None else f"{least} to {most}"
    raise InvalidOptionError(option=option, reason=f"must be an int, {wanted}, not {shown(value)}")


def checked_number(option: str, value: Any, *, above_zero: bool = False) -> float:
    """E75 unless it is a finite number, 0 or more, or ``above_zero``."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if is_number and 0 <= value <= sys.float_info.max and (value > 0 or not above_zero):
        return float(value)
    wanted = "greater than 0" if above_zero else "0 or more"
    raise InvalidOptionError(option=option, reason=f"must be a number, {wanted}, not {shown(value)}")


def checked_scale(option: str, value: Any) -> tuple[float, float]:
    """E75 unless both are finite and in order."""
    ends = value if isinstance(value, (tuple, list)) else ()
    are_numbers = all(isinstance(end, (int, float)) and not isinstance(end, bool) for end in ends)
    if are_numbers and len(ends) == 2 and -_HUGE < ends[0] < ends[1] < _HUGE:  # noqa: PLR2004 - both ends
        return float(ends[0]), float(ends[1])
    reason = f"must be the lowest and the highest score, such as (0, 1), not {shown(value)}"
    raise InvalidOptionError(option=option, reason=reason)


def checked_bool(option: str, value: Any) -> bool:
    """E75 unless it is a bool."""
    if not isinstance(value, bool):
        raise InvalidOptionError(option=option, reason=f"must be True or False, not {value!r}")
    return value


def checked_text(option: str, value: Any) -> str:
    """E75 unless it is a str."""
    if isinstance(value, str):
        return value
    raise InvalidOptionError(option=option, reason=f"must be a str, not {value!r}")


def checked_path(option: str, value: Any) -> str:
    """E75 unless it is a str or a Path."""
    path = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    if isinstance(path, str):
        return path
    raise InvalidOptionError(option=option, reason=f"must be a str or a Path, not {value!r}")


def checked_list(option: str, values: Any) -> list[Any]:
    """E75 unless it is iterable and not a str, bytes or path."""
    if isinstance(values, Iterable) and not isinstance(values, (str, bytes, os.PathLike)):
        return list(values)
    raise InvalidOptionError(option=option, reason=f"must be a list, not {values!r}")


def shown(value: Any) -> str:
    """Return a short ``repr(value)``."""
    try:
        return reprlib.repr(value)
    except ValueError:  # an int of thousands of digits
        return f"a very large {type(value).__name__}"
