"""Translates filter options into arguments of the store."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, NoReturn

from kantan_agents.cli.terminal.read_quantities import read_moment
from kantan_agents.cli.traces.options import FilterOptions
from kantan_agents.errors import InvalidOptionError

_SQLITE_INTEGERS = range(-(2**63), 2**63)


def read_filters(options: FilterOptions) -> dict[str, Any]:
    """Return the options as keyword arguments of ``TraceStore.traces``."""
    if options.rubric_below is not None:
        check_finite(options.rubric_below, "--rubric-below")
    return {
        "agent": options.agent,
        "prompt": options.prompt,
        "version": options.version,
        "tool": options.tool,
        "metadata": _read_metadata(options.meta or ()) or None,
        "has_failed": options.errors,
        "has_error": options.failed_spans or None,
        "has_denial": options.denied or None,
        "has_cut_answer": options.cut or None,
        "rubric_below": options.rubric_below,
        "started_from": None if options.since is None else read_moment(options.since, "--since"),
        "started_to": None if options.until is None else read_moment(options.until, "--until"),
    }


def check_words(words: Sequence[str]) -> None:
    """Check that no search word is empty."""
    if not all(word.strip() for word in words):
        raise InvalidOptionError(option="WORDS", reason="must not be empty")


def _read_metadata(entries: Sequence[str]) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for entry in entries:
        key, mark, value = entry.partition("=")
        if not key or not mark:
            raise InvalidOptionError(option="--meta", reason=f"must be KEY=VALUE, not {entry!r}")
        if key in metadata:
            raise InvalidOptionError(
                option="--meta", reason=f"{key!r} is given twice, no run has both values"
            )
        metadata[key] = _read_value(value)
    return metadata


def _read_value(text: str) -> str | int | float | bool | None:
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, int) and value not in _SQLITE_INTEGERS:
        return text
    if isinstance(value, float) and not math.isfinite(value):
        return text
    return value if value is None or isinstance(value, (str, int, float)) else text


def check_finite(number: float, option: str) -> None:
    """Check that ``number`` is finite."""
    if not math.isfinite(number):
        raise InvalidOptionError(option=option, reason=f"must be a finite number, not {number}")


def _refuse_constant(name: str) -> NoReturn:
    # JSON has no NaN and Infinity: they count as strings.
    raise ValueError(name)
