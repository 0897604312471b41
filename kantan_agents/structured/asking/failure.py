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


given_up: ContextVar[UnfitOutputError | None] = ContextVar("kantan_agents_given_up", default=None)
"""Set where the last reply is handed to the SDK although it does not fit: what its schema is to raise."""


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
