"""The error of a failed structured output."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from agents import ModelBehaviorError

from kantan_agents.errors import StructuredOutputError


class UnfitOutputError(StructuredOutputError, ModelBehaviorError):
    """E40, for the SDK's ``invalid_final_output`` handlers."""

    def __init__(self, **data: Any) -> None:
        StructuredOutputError.__init__(self, **data)
        self.message = str(self)
        self.run_data = None


_failure: ContextVar[tuple[object, UnfitOutputError] | None] = ContextVar(
    "kantan_agents_output_failure", default=None
)


def set_failure(schema: object, error: UnfitOutputError) -> None:
    """Make a schema reject the next reply."""
    _failure.set((schema, error))


def clear_failure() -> None:
    """Remove an earlier run's failure."""
    if _failure.get() is not None:
        _failure.set(None)


def failure_for(schema: object, text: str) -> UnfitOutputError | None:
    """Return the error for this reply, if any."""
    known = _failure.get()
    if known is None or known[0] is not schema or known[1].text != text:
        return None
    return known[1]


def unfit_output(output: str, attempts: list[Any]) -> UnfitOutputError:
    """Return the error for an output type and its attempts."""
    replies = [attempt.text for attempt in attempts if attempt.text is not None]
    tried = "; ".join(f"{number}. {attempt}" for number, attempt in enumerate(attempts, 1))
    return UnfitOutputError(
        output=output,
        text=replies[-1] if replies else None,
        attempts=tuple(attempts),
        count=len(attempts),
        tried=tried or "nothing",
    )
