"""The end of a structured answer that did not come."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from agents import ModelBehaviorError

from kantan_agents.errors import StructuredOutputError


class UnfitOutputError(StructuredOutputError, ModelBehaviorError):
    """E40 as the SDK knows it, so that its ``invalid_final_output`` handlers hear of it."""

    def __init__(self, **data: Any) -> None:
        StructuredOutputError.__init__(self, **data)
        self.message = str(self)
        self.run_data = None


_given_up: ContextVar[tuple[object, UnfitOutputError] | None] = ContextVar(
    "kantan_agents_given_up", default=None
)


def give_up(schema: object, error: UnfitOutputError) -> None:
    """Have a schema raise an error for the text that is now handed to the SDK although it does not fit."""
    _given_up.set((schema, error))


def begin_anew() -> None:
    """Forget what was given up before: runs follow one another in one task."""
    if _given_up.get() is not None:
        _given_up.set(None)


def given_up(schema: object, text: str) -> UnfitOutputError | None:
    """Return the error that a schema is to raise for a text, None for any other text."""
    known = _given_up.get()
    if known is None or known[0] is not schema or known[1].text != text:
        return None
    return known[1]


def unfit_output(output: str, attempts: list[Any]) -> UnfitOutputError:
    """Return the error for an answer that did not come.

    Args:
        output: Name of the output type.
        attempts: What was tried, in order.
    """
    replies = [attempt.text for attempt in attempts if attempt.text is not None]
    tried = "; ".join(f"{number}. {attempt}" for number, attempt in enumerate(attempts, 1))
    return UnfitOutputError(
        output=output,
        text=replies[-1] if replies else None,
        attempts=tuple(attempts),
        count=len(attempts),
        tried=tried or "nothing",
    )
