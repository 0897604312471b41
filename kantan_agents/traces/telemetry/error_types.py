"""The type of the error of a span: a class of exceptions, or a code of this library."""

from __future__ import annotations

import sys
from typing import Any

from kantan_agents.core.interception import current_tool_call
from kantan_agents.errors import code_of
from kantan_agents.traces.telemetry.open_spans import Open

UNKNOWN = "_OTHER"
"""The conventions' word for an error of an unknown type."""


def error_type(error: Any, noted: str | None = None) -> str | None:
    """Return a short name of the error of a span that is just ending; None if it has not failed.

    A span ends inside the ``with`` block that an exception leaves, so the exception is the one being handled.

    Args:
        error: The SDK's error of the span.
        noted: What ``note_errors`` has noted.
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
    """Note the type of each exception that a tool's span gets its error from; ``forget_errors`` ends that.

    The SDK keeps only a text of it, and answers the model long before the span ends.
    """
    set_error = span.set_error

    def noting(error: Any) -> None:
        call = current_tool_call.get()
        # A middleware may have handled the exception of the tool already.
        raised = sys.exc_info()[1] if call is None or call.error is None else call.error
        if raised is not None:
            opened.raised = code_of(raised) or type(raised).__name__
        set_error(error)

    if hasattr(span, "__dict__"):  # also if another library has wrapped it
        span.set_error = noting


def forget_errors(span: Any) -> None:
    """Let a span be as it was, without the cycle of references that ``note_errors`` has made."""
    getattr(span, "__dict__", {}).pop("set_error", None)
