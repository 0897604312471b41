"""``ToolErrors``: the model's result if a tool fails."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from agents import ModelBehaviorError

from kantan_agents.core.interception import Middleware, ToolCall, ToolNext, end_run_with
from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.secrets import mask

_MAX_MESSAGE_LENGTH = 2000

ToolErrorPolicy = (
    Literal["fixed", "message", "raise"] | Callable[[Exception, ToolCall], "str | Awaitable[str]"]
)
"""How a tool's exception is handled; see ``ToolErrors``."""


class ToolErrors(Middleware):
    """Chooses the result that the model receives when a tool raises an exception.

    Some versions of the SDK send the exception's message to the model. Such messages may contain paths,
    addresses and keys. It replaces the tool's own ``failure_error_function``. Denials by the tool rules,
    results that a tool returns, and the SDK's message for a tool timeout are not changed.

    Args:
        policy: ``"fixed"``: a fixed sentence with the tool's name and nothing from the exception.
            ``"message"``: the exception's type and message, with secrets masked as in traces, truncated to
            2000 characters. ``"raise"``: the exception fails the run. A sync or async function ``(error,
            call)``: the string that it returns.

    Raises:
        InvalidOptionError: E75, ``policy`` has another value.
    """

    def __init__(self, policy: ToolErrorPolicy = "fixed") -> None:
        if policy not in ("fixed", "message", "raise") and not callable(policy):
            raise InvalidOptionError(
                option="policy", reason=f'must be "fixed", "message", "raise" or a function, not {policy!r}'
            )
        self._policy = policy

    async def tool_call(self, call: ToolCall, call_next: ToolNext) -> Any:
        """Apply the policy if the tool raises."""
        try:
            return await call_next(call)
        except Exception as error:
            if error is not call.error:  # raised by the rules or another middleware
                raise
            if self._policy == "raise":
                end_run_with(call.run, error)
                raise
            return await self._failure_text(error, call)

    async def _failure_text(self, error: Exception, call: ToolCall) -> str:
        if callable(self._policy):
            text: Any = self._policy(error, call)
            text = await text if inspect.isawaitable(text) else text
            if not isinstance(text, str):
                raise InvalidOptionError(
                    option="policy", reason=f"the function must return a str, not {text!r}"
                ) from error
            return text
        if self._policy == "message":
            return mask(f"{type(error).__name__}: {error}")[:_MAX_MESSAGE_LENGTH]
        if isinstance(error, ModelBehaviorError):
            return f"The tool {call.name} cannot take these arguments. Correct them and call it again."
        return f"The tool {call.name} failed. There is no result."

    def __repr__(self) -> str:
        return f"ToolErrors({self._policy!r})"
