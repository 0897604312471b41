"""``ToolErrors``: what the model is told when a tool fails."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from agents import ModelBehaviorError
from kantan_llm.tracing.sanitize import sanitize_text

from kantan_agents.errors import InvalidOptionError
from kantan_agents.interception import Middleware, ToolCall, ToolNext, end_run_with

_LONGEST_MESSAGE = 2000

ToolErrorPolicy = (
    Literal["fixed", "message", "raise"] | Callable[[Exception, ToolCall], "str | Awaitable[str]"]
)
"""What becomes of a tool's exception; see ``ToolErrors``."""


class ToolErrors(Middleware):
    """Decides what the model is told when a tool raises an exception.

    Some versions of the SDK tell it the exception's message, and what stands in there was seldom written for
    a model: paths, addresses, keys. What the rules refuse, what a tool returns, and the SDK's own answer to a
    tool's timeout are left as they are.

    Args:
        policy: ``"fixed"``: a sentence with the tool's name and nothing of the exception. ``"message"``: type
            and message of the exception, with secrets masked as in traces, and cut. ``"raise"``: the
            exception ends the run. Or a function ``(error, call)``, sync or async, that returns the text.

    Raises:
        InvalidOptionError: E75, ``policy`` is none of these.
    """

    def __init__(self, policy: ToolErrorPolicy = "fixed") -> None:
        if policy not in ("fixed", "message", "raise") and not callable(policy):
            raise InvalidOptionError(
                option="policy", reason=f'must be "fixed", "message", "raise" or a function, not {policy!r}'
            )
        self._policy = policy

    async def tool_call(self, call: ToolCall, call_next: ToolNext) -> Any:
        """Run the tool, and answer for it if it raises."""
        try:
            return await call_next(call)
        except Exception as error:
            if error is not call.error:  # the rules' or another middleware's
                raise
            if self._policy == "raise":
                end_run_with(call.run, error)
                raise
            return await self._told(error, call)

    async def _told(self, error: Exception, call: ToolCall) -> str:
        if callable(self._policy):
            text: Any = self._policy(error, call)
            text = await text if inspect.isawaitable(text) else text
            if not isinstance(text, str):
                raise InvalidOptionError(
                    option="policy", reason=f"the function must return a str, not {text!r}"
                ) from error
            return text
        if self._policy == "message":
            return sanitize_text(f"{type(error).__name__}: {error}")[:_LONGEST_MESSAGE]
        if isinstance(error, ModelBehaviorError):
            return f"The tool {call.name} cannot take these arguments. Correct them and call it again."
        return f"The tool {call.name} failed. There is no result."

    def __repr__(self) -> str:
        return f"ToolErrors({self._policy!r})"
