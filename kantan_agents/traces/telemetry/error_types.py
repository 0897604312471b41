"""The error type of a span: an exception class, or a code of this library."""

from __future__ import annotations

import sys
from typing import Any

from kantan_agents.core.interception import current_tool_call
from kantan_agents.errors import code_of
from kantan_agents.traces.telemetry.open_spans import Open

UNKNOWN = "_OTHER"


def error_type(error: Any, noted: str | None = None) -> str | None:
    """Return a short name for the error of an ending span, if any.

    A span ends inside the ``with`` block that an exception leaves, so ``sys.exc_info`` has it.
    """
    raised = sys.exc_info()[0]
    if not error:
        return None if raised is None or issubclass(raised, Exception) else raised.__name__
    data = error.get("data") if isinstance(error, dict) else None
    if isinstance(data, dict):
        for key in ("code", "error_type"):
            if isinstance(data.get(key), str):
                return str(data[key])
    return noted or (UNKNOWN if raised is None else raised.__name__)


def note_errors(span: Any, opened: Open) -> None:
    """Note the types of a tool span's exceptions until ``forget_errors``.

    The SDK stores only the message, and answers the model long before the span ends.
    """
    set_error = span.set_error

    def noting(error: Any) -> None:
        call = current_tool_call.get()
        # A middleware may have handled the tool's exception already.
        raised = sys.exc_info()[1] if call is None or call.error is None else call.error
        if raised is not None:
            opened.raised = code_of(raised) or type(raised).__name__
        set_error(error)

    if hasattr(span, "__dict__"):  # even if another library has wrapped it
        span.set_error = noting


def forget_errors(span: Any) -> None:
    """Remove the reference cycle of ``note_errors``."""
    getattr(span, "__dict__", {}).pop("set_error", None)
