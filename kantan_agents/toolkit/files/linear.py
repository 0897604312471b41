"""Regular expressions of RE2, which take linear time, whatever a model writes."""

from __future__ import annotations

from typing import Any

import re2

_compile: Any = re2.compile
_escape: Any = re2.escape
_full_match_set: Any = re2.Set.FullMatchSet
_NOTHING = rb"[^\x00-\x{10FFFF}]"


def compiled(pattern: str, **options: bool) -> Any:
    """Compile an expression for UTF-8 bytes; raise ValueError."""
    try:
        return _compile(pattern.encode(), _options(**options))
    except UnicodeEncodeError as error:
        raise ValueError("it is not valid Unicode") from error
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(text) from error


def escaped(text: str) -> str:
    """Return an expression for exactly this string."""
    return str(_escape(text))


def compiled_set(patterns: list[str]) -> Any:
    """Compile expressions to match together against whole strings; invalid ones match nothing."""
    found = _full_match_set(_options())
    for pattern in patterns:
        _add(found, pattern)
    found.Compile()
    return found


def _add(found: Any, pattern: str) -> None:
    try:
        found.Add(pattern.encode())
    except (re2.error, UnicodeEncodeError):
        found.Add(_NOTHING)


def _options(**options: bool) -> Any:
    chosen = re2.Options()
    chosen.log_errors = False  # it would write to stderr
    chosen.never_capture = True
    for name, value in options.items():
        setattr(chosen, name, value)
    return chosen
