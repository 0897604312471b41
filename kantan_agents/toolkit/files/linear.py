"""Regular expressions that take linear time, whatever a model writes: those of RE2."""

from __future__ import annotations

from typing import Any

import re2

_compile: Any = re2.compile
_escape: Any = re2.escape


def compiled(pattern: str, **options: bool) -> Any:
    """Compile an expression for bytes of UTF-8.

    Args:
        pattern: The expression.
        options: Options of RE2 by name.

    Raises:
        ValueError: It is invalid; the message says why.
    """
    chosen = re2.Options()
    chosen.log_errors = False  # it would write to stderr
    chosen.never_capture = True
    for name, value in options.items():
        setattr(chosen, name, value)
    try:
        return _compile(pattern.encode(), chosen)
    except UnicodeEncodeError as error:
        raise ValueError("it is not valid Unicode") from error
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(text) from error


def escaped(text: str) -> str:
    """Return an expression that matches exactly this text."""
    return str(_escape(text))
