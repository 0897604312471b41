"""Reads options of ``kantan-agents improve``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, Final

from kantan_agents.cli.terminal.read_quantities import read_duration
from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.nearest import nearest

_BUDGET: Final = re.compile(r"(?P<number>[0-9]{1,15}(?:\.[0-9]{1,6})?)(?P<unit>[kM]?)", re.ASCII)
_UNITS: Final = {"": 1, "k": 1_000, "M": 1_000_000}
_KEYS: Final = ("last", "limit", "sample", "trace")


def read_budget(text: str) -> int:
    """Return a number of tokens, such as ``500k``."""
    found = _BUDGET.fullmatch(text.strip())
    tokens = 0 if found is None else int(Fraction(found["number"]) * _UNITS[found["unit"]])
    if tokens < 1:
        reason = f"must be a number of tokens, such as 500000, 500k or 2M, not {text!r}"
        raise InvalidOptionError(option="--budget", reason=reason)
    return tokens


def read_cohort(entries: Iterable[str]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return trace ids or arguments that select runs, never both (E75)."""
    traces: list[str] = []
    selection: dict[str, Any] = {}
    for entry in (one.strip() for given in entries for one in given.split(",")):
        key, mark, value = entry.partition("=")
        if key not in _KEYS or not mark or not value:
            near = nearest(key, _KEYS)
            hint = f"did you mean {near}=...?" if near is not None else f"there are {', '.join(_KEYS)}"
            raise _invalid(f"{entry!r} must be KEY=VALUE, such as last=7d; {hint}")
        if key == "trace":
            traces.append(value)
        elif key in selection:
            raise _invalid(f"{key} is given twice")
        else:
            selection[key] = read_duration(value, "--cohort") if key == "last" else _count(key, value)
    if traces and selection:
        raise _invalid(f"{next(iter(selection))} selects runs, and trace names them; use one of both")
    return tuple(traces), selection


def read_reflection_settings(tokens: int | None, timeout: float | None) -> Any:
    """Return the reflection model's settings, if any."""
    if tokens is None and timeout is None:
        return None
    from agents import ModelSettings

    return ModelSettings(max_tokens=tokens, extra_args=None if timeout is None else {"timeout": timeout})


def _count(key: str, value: str) -> int:
    if not value.isascii() or not value.isdigit() or len(value) > 9 or int(value) < 1:  # noqa: PLR2004 - fits any int
        raise _invalid(f"{key} must be an int, 1 or more, not {value!r}")
    return int(value)


def _invalid(reason: str) -> InvalidOptionError:
    return InvalidOptionError(option="--cohort", reason=reason)
